import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { traitsOf } from '../../packages/kits/src/postgres/connection_target.ts'
import { type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { requestSettings } from '../../packages/kits/src/postgres/pool_settings.ts'
import type { AppendedEntry, AppendRequest } from '../../packages/server/src/log/append/append_request.ts'
import { Appender, type AppenderOptions } from '../../packages/server/src/log/append/appender.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/** One stored entry. */
export interface StoredEntry {
  seq: number
  id: string
  created_at: string
  data: { mark: string }
}

/** A database with appenders on it, as several nodes would have, for the tests of one file. */
export interface LogFixture {
  readonly url: string
  /** An appender with connections of its own, as one node has; the second as one behind a pooler, and so on by turns. */
  newNode(options?: Partial<AppenderOptions>, url?: string): Appender
  newProject(): Promise<string>
  newSession(project_id: string, session_id?: string): Promise<string>
  /** An event that is pending. */
  newInput(project_id: string, session_id: string): Promise<string>
  readSession(project_id: string, session_id: string): Promise<{ last_seq: number; entries: StoredEntry[] }>
}

/** Registers the hooks that make a database before, and remove it after, the tests of the calling file. */
export function useLog(): LogFixture {
  let testDatabase: TestDatabase | undefined
  let settings: Record<string, string> = {}
  let pool: pg.Pool | undefined
  const databases: DatabasePool[] = []
  const appenders: Appender[] = []
  beforeAll(async () => {
    testDatabase = await createTestDatabase()
    settings = await settingsFor(testDatabase.url)
    pool = new pg.Pool({ connectionString: testDatabase.url, max: 4 })
    pool.on('error', () => {})
  })
  afterAll(async () => {
    for (const appender of appenders) appender.close()
    await Promise.all(databases.map((database) => database.close()))
    await pool?.end()
    await testDatabase?.drop()
  })
  const run = (statement: string, values: unknown[]) => pool!.query(statement, values)
  return {
    get url() {
      return testDatabase!.url
    },
    newNode: (options = {}, url = testDatabase!.url) => {
      // Every other one as behind a pooler.
      const database = openAs(url, databases.length % 2 === 0 ? settings : undefined)
      databases.push(database)
      const limits = { queue_requests_max: 10_000, queue_bytes_max: 1e8, flushes_max: 2, wait_ms_max: 60_000 }
      const appender = new Appender({ database: { of: () => database }, ...limits, ...options })
      appenders.push(appender)
      return appender
    },
    newProject: async () => {
      const id = randomUUID()
      await run('INSERT INTO projects (id, name, created_at) VALUES ($1, $2, now())', [id, `project-${id}`])
      return id
    },
    newSession: async (project_id, session_id = randomUUID()) => {
      await run(
        `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at) VALUES ($1, $2, '{}', false, now())`,
        [project_id, session_id],
      )
      await run(
        'INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at) VALUES ($1, $2, 0, 0, now())',
        [project_id, session_id],
      )
      return session_id
    },
    newInput: async (project_id, session_id) => {
      const id = randomUUID()
      await run(
        `INSERT INTO session_inbox (project_id, session_id, id, place, mode, entry_kind, type, bytes, tokens, data, created_at, not_before)
         VALUES ($1, $2, $3, 1, 'queue', 'event', 'marked', 2, 0, '{}', now(), now())`,
        [project_id, session_id, id],
      )
      return id
    },
    readSession: (project_id, session_id) => readSession(pool!, [project_id, session_id]),
  }
}

async function readSession(pool: pg.Pool, ofSession: [project_id: string, session_id: string]) {
  const heads = await pool.query<{ last_seq: string }>(
    'SELECT last_seq FROM session_heads WHERE project_id = $1 AND session_id = $2',
    ofSession,
  )
  const entries = await pool.query<Omit<StoredEntry, 'seq'> & { seq: string }>(
    `SELECT seq, id, extract(epoch FROM created_at)::text AS created_at, data FROM entries
     WHERE project_id = $1 AND session_id = $2 ORDER BY seq`,
    ofSession,
  )
  return {
    last_seq: Number(heads.rows[0]?.last_seq),
    entries: entries.rows.map((entry) => ({ ...entry, seq: Number(entry.seq) })),
  }
}

function openAs(connectionString: string, settings: Record<string, string> | undefined): DatabasePool {
  return openDatabase({
    target: { connectionString },
    connections_max: 2,
    wait_ms_max: 5_000,
    statement_ms_max: 20_000,
    ...(settings && { settings }),
  })
}

async function settingsFor(connectionString: string): Promise<Record<string, string>> {
  return requestSettings({ connectionString, ...(await traitsOf({ connectionString })) })
}

/** A request to append one event that can be told from every other by its mark. */
export function eventRequest(
  project_id: string,
  session_id: string,
  { data, ...parts }: Partial<AppendRequest> & { data?: string } = {},
): AppendRequest {
  const entries = [anEntry(data ?? JSON.stringify({ mark: randomUUID() }))]
  return {
    project_id,
    session_id,
    kind: 'event',
    entries,
    unmarked_until: Number.POSITIVE_INFINITY,
    ...parts,
  }
}

/** A request to append a batch of events, with ids of the caller's where they are given. */
export function batchRequest(
  project_id: string,
  session_id: string,
  marks: string[],
  ids: string[] = [],
): AppendRequest {
  const entries = marks.map((mark, index) => anEntry(JSON.stringify({ mark }), ids[index]))
  return { project_id, session_id, kind: 'entries', entries, unmarked_until: Number.POSITIVE_INFINITY }
}

function anEntry(data: string, given?: string): AppendedEntry {
  return {
    id: given ?? randomUUID(),
    id_given: given !== undefined,
    key: null,
    kind: 'event',
    type: 'marked',
    format: null,
    role: null,
    bytes: Buffer.byteLength(data),
    tokens: 0,
    occurred_at: null,
    data,
    meta: null,
  }
}

/** What stands for inputs in a request that applies them. */
export function inputEntries(ids: readonly string[] = []): AppendedEntry[] {
  return ids.map((id) => ({ ...anEntry('{}'), id, type: null, bytes: 0, is_input: true }))
}

/** How an append ended: its seqs, or the name of its error. */
export async function ending(node: Appender, request: AppendRequest): Promise<number[] | string> {
  try {
    return (await node.append(request)).entries.map((entry) => entry.seq)
  } catch (error) {
    return (error as { error?: string }).error ?? (error as Error).name
  }
}
