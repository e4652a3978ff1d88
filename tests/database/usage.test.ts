import { describe, expect, inject, it } from 'vitest'
import { openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { countUsage } from '../../packages/server/src/projects/usage.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { batchRequest, eventRequest, useLog } from './log_fixture.ts'

const log = useLog()

async function usageOf(project_id: string, sessions_at_once?: number) {
  const database = openDatabase({
    target: { connectionString: log.url },
    connections_max: 1,
    wait_ms_max: 10_000,
    statement_ms_max: 0,
  })
  try {
    return await countUsage({ database, project_id }, sessions_at_once)
  } finally {
    await database.close()
  }
}

/** What the entries themselves add up to. */
async function truthOf(project_id: string) {
  const [row] = await queryRows<Record<string, string>>(
    log.url,
    `SELECT (SELECT count(*) FROM session_heads WHERE project_id = $1) AS sessions, count(*) AS entries,
       coalesce(sum(bytes), 0) AS bytes FROM entries WHERE project_id = $1`,
    [project_id],
  )
  const { sessions, entries, bytes } = row!
  return {
    ...{ sessions: Number(sessions), entries: Number(entries), bytes: Number(bytes) },
    ...{ blobs: 0, blob_bytes: 0, statements: 0, statement_days: new Map() },
  }
}

describe('what a project has', () => {
  it('is what its entries add up to, however many slices it is counted in', async () => {
    const project = await log.newProject()
    const node = log.newNode()
    for (let session = 0; session < 7; session++) {
      const id = await log.newSession(project)
      await node.append(eventRequest(project, id))
      await node.append(
        batchRequest(
          project,
          id,
          Array.from({ length: session + 1 }, (_, at) => `mark ${at}`),
        ),
      )
    }
    const truth = await truthOf(project)
    expect(truth).toMatchObject({ sessions: 7, entries: 35 })
    for (const sessions_at_once of [1, 2, 3, 7, 8, undefined])
      expect(await usageOf(project, sessions_at_once)).toEqual(truth)
  })

  it('has statements by the day on which they were made, also where many were made at one time', async () => {
    const project = await log.newProject()
    const days = { '2026-11-01': 1, '2026-11-02': 5, '2026-11-03': 2 }
    await execute(
      log.url,
      "INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) VALUES ($1, $1, '{}', now(), now())",
      [project],
    )
    for (const [day, count] of Object.entries(days))
      await execute(
        log.url,
        `INSERT INTO statements (project_id, learning_space_id, id, skill_id, statement_kind, state, author, pinned, text, supports,
           contradicts, created_at, updated_at)
         SELECT $1::uuid, $1::uuid, gen_random_uuid(), $1::uuid, 'fact', 'active', 'rule', false, 'It is.', 1, 0, t, t
         FROM generate_series(1, $3), (SELECT $2::timestamptz) AS time (t)`,
        [project, `${day}T23:59:59.999999Z`, count],
      )
    for (const at_once of [1, 2, 3, 8, 9, undefined])
      expect(await usageOf(project, at_once)).toMatchObject({
        statements: 8,
        statement_days: new Map(Object.entries(days)),
      })
  })

  it('is right where a node of an older version appended, or something else wrote: such logs are added up', async () => {
    const project = await log.newProject()
    const node = log.newNode()
    const session = await log.newSession(project)
    await node.append(eventRequest(project, session))
    // As an older version appends: it does not know of bytes.
    await execute(
      log.url,
      `WITH moved AS (UPDATE session_heads SET last_seq = 2 WHERE project_id = $1 AND session_id = $2)
       INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
       VALUES ($1, $2, 2, now(), now(), gen_random_uuid(), 500, 0, 'event', 'a', '{}')`,
      [project, session],
    )
    await node.append(eventRequest(project, session))
    const truth = await truthOf(project)
    expect(truth.entries).toBe(3)
    expect(await usageOf(project)).toEqual(truth)
    const [head] = await queryRows(
      log.url,
      'SELECT bytes, counted FROM session_heads WHERE project_id = $1',
      [project],
    )
    expect(head).toEqual({ bytes: String(truth.bytes), counted: '3' })
  })

  it.skipIf(inject('testServer').mode === 'shared')(
    'costs an append no index: heads are still updated in place',
    async () => {
      const indexed = await queryRows(
        log.url,
        `SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
         WHERE i.indrelid = 'session_heads'::regclass AND a.attname IN ('bytes', 'counted', 'last_seq', 'updated_at')`,
      )
      expect(indexed).toEqual([])
    },
  )
})
