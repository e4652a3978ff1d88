import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { VERIFY_SESSIONS } from '../../packages/archive/src/sessions/verify_session_queries.ts'
import { verifyPiece } from '../../packages/archive/src/verify/verify_queries.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { LONG_READ_SETTINGS } from '../../packages/kits/src/postgres/pool_settings.ts'
import type { Statement } from '../../packages/kits/src/postgres/statement.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { execute, withConnection } from '../harness/sql.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/*
 * What a piece of `annals verify` costs, counted and not timed: pages that it looks at and rows that it handles. A
 * piece of four times the sessions may cost four times as much, on the settings of `annals verify` and on the server's
 * own, which are those behind a pooler, whether the tables were analyzed or not. Configs differ from session to
 * session, so that the index has as many terms as there are sessions.
 */

const FEW = 500
/** Five looks at an index of three levels, and a little more: reading a table for each row would be dozens. */
const PAGES_PER_ROW = 18
const SETTINGS: Record<string, Record<string, string>> = {
  'the settings of annals verify': LONG_READ_SETTINGS,
  "the server's own settings": {},
}

interface Plan {
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Join Filter'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

describe.skipIf(inject('testServer').mode === 'shared')('a piece of annals verify', () => {
  let database: TestDatabase
  const few = randomUUID()
  const many = randomUUID()
  beforeAll(async () => {
    database = await createTestDatabase()
    await load(few, FEW)
    await load(many, 4 * FEW)
  })
  afterAll(() => database.drop())

  it.each(
    Object.keys(SETTINGS).flatMap((settings) =>
      ['not analyzed', 'analyzed'].map((state) => [settings, state] as const),
    ),
  )('costs four times as much for four times the rows, with %s, %s', async (settings, state) => {
    if (state === 'analyzed') await execute(database.url, 'ANALYZE')
    const { tables } = registryOf(MODULES)
    const spaces = tables.find(({ kind }) => kind === 'learning_space')!
    for (const [statement, more] of [
      [VERIFY_SESSIONS, [null, null]],
      [verifyPiece(spaces, tables), [10_000, null]],
    ] as const) {
      const small = await costOf(statement, [few, ...more], SETTINGS[settings]!)
      const large = await costOf(statement, [many, ...more], SETTINGS[settings]!)
      expect(large.rows / small.rows, `${statement.name}: rows`).toBeLessThan(5)
      // Few rows may get a cheaper plan. What looks each row up by an index costs a few pages a row, whatever their number.
      const pages_max = Math.max(5 * small.pages, PAGES_PER_ROW * 4 * FEW)
      expect(large.pages, `${statement.name}: pages`).toBeLessThan(pages_max)
    }
  })

  /** Sessions of five entries, and as many learning spaces. */
  async function load(project_id: string, sessions: number): Promise<void> {
    const rows = `SELECT n, md5('${project_id}' || n)::uuid AS id, timestamptz '2026-01-01Z' + n * interval '1 s' AS created_at,
      jsonb_build_object('run', n, 'agent', n % 5) AS document FROM generate_series(1, ${sessions}) AS n`
    const terms = (list: string) => `INSERT INTO list_terms (project_id, term, created_at, item_id, signature)
      SELECT $1::uuid, x.term, g.created_at, g.id, i.signature
      FROM (${rows}) g CROSS JOIN LATERAL index_terms('${list}', g.document, NULL) AS i CROSS JOIN LATERAL unnest(i.terms) AS x (term)`
    for (const step of [
      `INSERT INTO projects (id, name, created_at) VALUES ($1::uuid, 'p' || $1::uuid, now())`,
      `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at) SELECT $1::uuid, id, document, false, created_at FROM (${rows}) g`,
      `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at) SELECT $1::uuid, id, 5, 0, created_at FROM (${rows}) g`,
      `INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) SELECT $1::uuid, id, document, created_at, created_at FROM (${rows}) g`,
      `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
       SELECT $1::uuid, id, seq, created_at, created_at, md5(id::text || seq)::uuid, 2, 0, 'event', 'a', '{}' FROM (${rows}) g, generate_series(1, 5) AS seq`,
      terms('sessions'),
      terms('learning_spaces'),
    ])
      await execute(database.url, step, [project_id])
  }

  async function costOf(
    statement: Statement,
    parameters: Array<string | number | null>,
    settings: Record<string, string>,
  ): Promise<{ rows: number; pages: number }> {
    return withConnection(database.url, async (connection) => {
      for (const [name, value] of Object.entries(settings)) await connection.query(`SET ${name} = '${value}'`)
      const { rows } = await connection.query(
        `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${statement.text}`,
        parameters,
      )
      const plan = rows[0]['QUERY PLAN'][0].Plan as Plan
      return { rows: rowsOf(plan), pages: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'] }
    })
  }
})

/** The rows that all steps of a plan handled: those that they passed on, and those that they compared and left out. */
function rowsOf(plan: Plan): number {
  const each =
    plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Join Filter'] ?? 0)
  return (plan.Plans ?? []).reduce((sum, inner) => sum + rowsOf(inner), each * plan['Actual Loops'])
}
