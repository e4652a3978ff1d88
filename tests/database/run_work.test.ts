import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { REQUEST_SETTINGS } from '../../packages/kits/src/postgres/pool_settings.ts'
import { insertLongSession } from '../harness/long_session.ts'
import { useSharedService } from '../harness/service.ts'

/*
 * What the functions of runs cost, counted and not timed: pages that PostgreSQL looks at, beside many sessions with due
 * input and an open request each, and one with as many that were answered, of which the planner knows nothing yet.
 */

const MANY = 20_000
const PAGES_MAX = 150
const SESSION = "md5('session ' || n)::uuid"
const LOAD = [
  `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at)
SELECT $1, ${SESSION}, jsonb_build_object('n', n), false, now() FROM generate_series(1, ${MANY}) n`,
  `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at, run_place)
SELECT $1, ${SESSION}, 0, 0, now(), 2 FROM generate_series(1, ${MANY}) n`,
  `INSERT INTO session_runs (project_id, session_id, ttl_ms, progress, place, wake_at)
SELECT $1, ${SESSION}, 0, false, 0, now() - n * interval '1 s' FROM generate_series(1, ${MANY}) n`,
  `INSERT INTO list_terms (project_id, term, created_at, item_id, signature)
SELECT s.project_id, x.term, s.created_at, s.id, i.signature
FROM sessions s CROSS JOIN LATERAL index_terms('sessions', s.configs, NULL) i CROSS JOIN LATERAL unnest(i.terms) x (term) WHERE s.project_id = $1`,
  `UPDATE session_runs SET wake_at = '2999-01-01' WHERE project_id = $1 AND session_id = md5('session ${MANY}')::uuid`,
  `INSERT INTO session_inbox (project_id, session_id, id, place, mode, entry_kind, type, bytes, tokens, data, created_at, not_before)
SELECT r.project_id, r.session_id, r.session_id, 1, 'queue', 'event', 'timer', 2, 0, '{}', now(), r.wake_at
FROM session_runs r WHERE r.project_id = $1`,
  `INSERT INTO session_requests (project_id, id, session_id, place, seq, bytes, body, created_at)
SELECT $1, ${SESSION}, ${SESSION}, 2, 1, 60, '{"kind":"question","text":"go on?"}', now() FROM generate_series(1, ${MANY}) n`,
]

const ANSWERED = `
INSERT INTO session_requests (project_id, id, session_id, place, seq, bytes, body, created_at, decision, resolved_at)
SELECT $1, md5('answered ' || n)::uuid, $2, 2, 1, 60, '{"kind":"question"}', now(), 'answer', now() FROM generate_series(1, ${MANY}) n`

describe.skipIf(inject('testServer').mode === 'shared')('beside many others', () => {
  const service = useSharedService()
  let connection: pg.Client
  let project: string
  let session: string
  const stored = randomUUID()
  /** What is in the configs of some of those that have been due for long, and that no other test claims. */
  const due = Array.from({ length: 20 }, (_, index) => MANY - 41 + index)

  beforeAll(async () => {
    project = (await service.newProject()).id
    connection = new pg.Client({ connectionString: service.databaseUrl })
    await connection.connect()
    for (const step of LOAD) await connection.query(step, [project])
    for (const [name, value] of Object.entries(REQUEST_SETTINGS))
      await connection.query(`SET ${name} = ${value}`)
    // The planner knows short sessions only, as beside those of other tests.
    for (let short = 0; short < 100; short += 1)
      await insertLongSession(service.databaseUrl, project, [{ count: 3, type: 'step' }])
    await connection.query('ANALYZE entries')
    session = await insertLongSession(service.databaseUrl, project, [{ count: MANY, type: 'step' }])
    await connection.query(ANSWERED, [project, session])
    await ask(stored)
  }, 120_000)
  afterAll(() => connection.end())

  /** How many pages a call of a stored function looks at, whose name ends with a digest. */
  async function pagesOf(name: string, values: unknown[]): Promise<number> {
    const { rows } = await connection.query<{ name: string }>(
      'SELECT proname AS name FROM pg_proc WHERE proname ~ $1',
      [`^${name}_[0-9a-f]{8}$`],
    )
    const parameters = values.map((_, index) => `$${index + 1}`).join(', ')
    const explained = await connection.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT ${rows[0]!.name}(${parameters})`,
      values,
    )
    const { Plan: plan } = explained.rows[0]['QUERY PLAN'][0]
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }

  const input = (id: string) =>
    JSON.stringify({
      ...{ id, mode: 'queue', kind: 'event', type: 'go', bytes: 2, tokens: 0, blobs: [], data: {} },
      ...{ key: null, role: null, format: null, meta: null, not_before: null, expires_at: null },
    })
  const question = (event_id: string, id: string = randomUUID()) => [
    ...[project, session, null, id, event_id, '{"kind":"question"}', null, null],
  ]
  /** Opens a request. */
  async function ask(event_id: string = randomUUID()): Promise<string> {
    const id = randomUUID()
    await pagesOf('open_request', question(event_id, id))
    return id
  }
  const answer = async (event_id: string) => [
    ...[project, await ask(), '[{"decision":"answer","answer":1}]', [event_id]],
  ]

  it.each<[string, string, () => unknown[] | Promise<unknown[]>]>([
    ['taking a lease', 'change_lease', () => [project, session, null, 1_000, 'a', false, false, false]],
    ['claiming work', 'claim_work', () => [project, 'a', 1_000, 1, null]],
    ['claiming work of some configs', 'claim_work', () => [project, 'a', 1_000, 1, `{"n":${due.pop()}}`]],
    ['claiming work of configs that none has', 'claim_work', () => [project, 'a', 1_000, 1, '{"n":0}']],
    ['claiming work of what is not due', 'claim_work', () => [project, 'a', 1_000, 1, `{"n":${MANY}}`]],
    ['adding an input', 'add_input', () => [project, session, null, input(randomUUID())]],
    ['adding one that the log has', 'add_input', () => [project, session, null, input(stored)]],
    ['withdrawing one that the log has', 'withdraw_input', () => [project, session, null, stored, null]],
    ['answering with an id of the log', 'resolve_requests', () => answer(stored)],
    ['asking again', 'open_request', () => question(randomUUID())],
    ['answering', 'resolve_requests', () => answer(randomUUID())],
  ])('%s looks at no more than at what it is about', async (_what, name, values) => {
    const pages: number[] = []
    // A call may be planned, for which PostgreSQL looks at its catalogue: the first one, and those after changes of others.
    for (let call = 0; call < 5; call += 1) pages.push(await pagesOf(name, await values()))
    expect(Math.min(...pages)).toBeLessThan(PAGES_MAX)
  })
})
