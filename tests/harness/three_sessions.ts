import { beforeAll, beforeEach } from 'vitest'
import type { ApiClient } from './api_client.ts'
import { expectOk } from './expectations.ts'
import type { Project, SharedService } from './service.ts'
import { newSessionLog, type SessionLog, type TimelineItem } from './session_log.ts'

export interface SessionAppend {
  session_id: string
  entries: unknown[]
  if_match?: unknown
  configs_patch?: unknown
}
interface Appended {
  appends: Array<{ session_id: string; items: TimelineItem[] }>
}

export const event = (more: object = {}) => ({ kind: 'event', type: 'note', data: {}, ...more })
export const message = (more: object = {}) => ({
  kind: 'message',
  blob: { role: 'user', content: 'x' },
  ...more,
})

/** Three sessions of one project, new for each test, and the calls that append to all of them. */
export function useThreeSessions(service: SharedService) {
  let project: Project
  let api: ApiClient
  let second: ApiClient
  let logs: SessionLog[]
  beforeAll(async () => {
    project = await service.newProject()
    api = await service.newClient({ token: project.token })
    second = await service.newClient({ token: project.token, node: service.secondNode })
  })
  beforeEach(async () => {
    logs = await Promise.all(
      ['a', 'b', 'c'].map((name) => newSessionLog(api, { configs: { name, keep: 1, drop: 2 } })),
    )
  })
  return {
    get project() {
      return project
    },
    get api() {
      return api
    },
    get logs() {
      return logs
    },
    /** Through the first node, or for an odd `node` the second. */
    send: (appends: unknown, headers: Record<string, string> = {}, node = 0) =>
      (node % 2 ? second : api).request<Appended>('POST', '/api/v1/entries', { body: { appends }, headers }),
    /** An event for each of the sessions; `more` for one of them. */
    toAll: (at = 0, more: Partial<SessionAppend> = {}): SessionAppend[] =>
      logs.map(({ id }, index) => ({ session_id: id, entries: [event()], ...(index === at && more) })),
    lengths: () =>
      Promise.all(logs.map(async ({ timeline }) => expectOk(await timeline({ limit: 200 })).items.length)),
  }
}
