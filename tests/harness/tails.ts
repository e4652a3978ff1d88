import { afterEach, beforeAll, beforeEach } from 'vitest'
import type { ApiClient } from './api_client.ts'
import { openTail, type Tail } from './event_stream.ts'
import type { NodeAddress, Project, Service } from './service.ts'
import { newSessionLog, type SessionLog } from './session_log.ts'

/** What a tail is opened with: by default at the service's first node, with the project's token, on the test's log. */
export type TailOptions = Parameters<typeof openTail>[3] & {
  node?: NodeAddress
  token?: string
  sessionId?: string
}

/** A project with a new session for each test, and the tails that the test opens. */
export interface Tails {
  readonly project: Project
  readonly api: ApiClient
  readonly log: SessionLog
  open(options?: TailOptions): Promise<Tail>
}

/** Registers the hooks that make a session before each test, and close its tails after it. */
export function useTails(service: Service): Tails {
  const open: Tail[] = []
  let project: Project
  let api: ApiClient
  let log: SessionLog
  beforeAll(async () => {
    project = await service.newProject()
    api = await service.newClient({ token: project.token })
  })
  beforeEach(async () => {
    log = await newSessionLog(api)
  })
  afterEach(() => {
    for (const tail of open.splice(0)) tail.close()
  })
  return {
    get project() {
      return project
    },
    get api() {
      return api
    },
    get log() {
      return log
    },
    open: async ({ node = service.node, token = project.token, sessionId = log.id, ...options } = {}) => {
      const tail = await openTail(node.url, token, sessionId, options)
      open.push(tail)
      return tail
    },
  }
}

/** The whole numbers from one to another, both included. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}
