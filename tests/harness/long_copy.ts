import { beforeEach, expect, vi } from 'vitest'
import type { ApiClient } from './api_client.ts'
import { runCommand } from './command_process.ts'
import { expectOk } from './expectations.ts'
import { insertLongSession } from './long_session.ts'
import { type Project, type Service, useService } from './service.ts'
import { type SessionLog, sessionLog } from './session_log.ts'
import { queryRows } from './sql.ts'

/** More than two slices of a copy. */
export const ENTRIES = 5_003
const RUNS = [{ count: 2_500, type: 'note' }, { count: 3 }, { count: 2_500, type: 'step' }]

/** What a project has in each table that has only the session, and another of its user, which is empty. */
export const UNCOPIED = {
  sessions: 2,
  session_heads: 2,
  entries: ENTRIES,
  idempotency_keys: 0,
  erased_sessions: 0,
}

/** For each test a project of its own with a session to be copied, whose user has another session. */
export interface LongSession {
  readonly service: Service
  readonly project: Project
  readonly api: ApiClient
  readonly source: SessionLog
  /** How many rows the project has in each table. */
  rows(): Promise<Record<string, number>>
  /** Waits until nothing of a copy is left. */
  untilUncopied(): Promise<void>
  /** Waits until no copy is in progress, and nothing is left of one that was broken off. */
  untilUnleased(): Promise<void>
  /** annals verify finds nothing wrong with the project. */
  expectSound(): Promise<void>
}

/** Registers the hooks that make a service and the sessions for the tests of the calling file. */
export function useLongSession(): LongSession {
  // A copy that is held waits for as long as a busy machine takes for what a test does meanwhile.
  const service = useService({ ANNALS_RETENTION_MS: '200', ANNALS_STATEMENT_MS_MAX: '300000' })
  const made = {} as { project: Project; api: ApiClient; source: SessionLog }
  beforeEach(async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const { user_id } = expectOk(await api.createSession({ user: 'ada' }), 201)
    const id = await insertLongSession(service.databaseUrl, project.id, RUNS, { user_id })
    Object.assign(made, { project, api, source: sessionLog(api, id) })
  })
  const rows = async () => {
    const counts = Object.keys(UNCOPIED).map(
      (table) => `(SELECT count(*)::int FROM ${table} WHERE project_id = $1) AS ${table}`,
    )
    const statement = `SELECT ${counts.join(', ')}`
    const [row] = await queryRows<Record<string, number>>(service.databaseUrl, statement, [made.project.id])
    return row!
  }
  return {
    service,
    get project() {
      return made.project
    },
    get api() {
      return made.api
    },
    get source() {
      return made.source
    },
    rows,
    untilUncopied: () => vi.waitFor(async () => expect(await rows()).toEqual(UNCOPIED), { timeout: 20_000 }),
    untilUnleased: () =>
      vi.waitFor(async () => expect(await rows()).toMatchObject({ erased_sessions: 0 }), {
        timeout: 20_000,
      }),
    expectSound: async () => {
      const env = { DATABASE_URL: service.databaseUrl }
      const verified = await runCommand(['verify', '--project', made.project.name], env)
      expect(verified.code, verified.stdout + verified.stderr).toBe(0)
    },
  }
}

/** The header that names a request. */
export const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } })
