import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { filteredList, insertTerms, type Listed } from '../../packages/kits/src/lists/listed.ts'
import { readList } from '../../packages/kits/src/lists/read_list.ts'
import type { Queryable, Row } from '../../packages/kits/src/postgres/database.ts'
import { goodLeaf, jsonTree, write } from '../../packages/messages/test/json/json_texts.ts'
import { LEARNING_SPACES, SPACE_LIST } from '../../packages/server/src/learning/learning_space_queries.ts'
import { SESSION_LIST } from '../../packages/server/src/log/append/append_queries.ts'
import {
  ADD_ACTIVITY,
  SESSIONS_BY_ACTIVITY,
} from '../../packages/server/src/sessions/last_activity_queries.ts'
import { SESSIONS } from '../../packages/server/src/sessions/session_queries.ts'
import { listUsers } from '../../packages/server/src/users/user_queries.ts'
import { useLog } from './log_fixture.ts'

/*
 * What lists give, as JSON that PostgreSQL makes of one row at a time: the straightforward way, and the yardstick for
 * the one that carries pages as columns.
 */
const timestamp = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
const session = `json_build_object('id', t.id, 'project_id', t.project_id, 'user_id', t.user_id, 'configs', t.configs,
  'disable_task_tracking', t.disable_task_tracking, 'created_at', ${timestamp('t.created_at')}, 'updated_at', ${timestamp('h.updated_at')})::jsonb
  || jsonb_strip_nulls(jsonb_build_object('expires_in_s', t.expires_in_s, 'parent_id', t.parent_id, 'forked_from', t.forked_from,
    'forked_at_seq', t.forked_at_seq))`
const ofSessions = 'sessions t JOIN session_heads h ON h.project_id = t.project_id AND h.session_id = t.id'
const times = `'created_at', ${timestamp('t.created_at')}, 'updated_at', ${timestamp('t.updated_at')}`
const YARDSTICK = {
  sessions: { json: session, from: ofSessions, at: 't.created_at', document: 't.configs' },
  active: {
    json: session,
    from: ofSessions,
    at: `date_trunc('second', h.updated_at, 'UTC')`,
    document: 't.configs',
  },
  spaces: {
    json: `json_build_object('id', t.id, 'user_id', t.user_id, 'meta', t.meta, ${times})::jsonb`,
    from: 'learning_spaces t',
    at: 't.created_at',
    document: 't.meta',
  },
  users: {
    json: `json_build_object('id', t.id, 'project_id', t.project_id, 'identifier', t.identifier, ${times})::jsonb`,
    from: 'users t',
    at: 't.created_at',
    document: `'{}'::jsonb`,
  },
}
const LISTS = { sessions: SESSIONS, active: SESSIONS_BY_ACTIVITY, spaces: LEARNING_SPACES }

const document = jsonTree(goodLeaf).map((tree) => `{"agent":"a","b\\u0001":[],"c":${write(tree)}}`)
const micros = fc.oneof(
  fc.constantFrom(0, 1, 120_000, 999_999, 100_000),
  fc.integer({ min: -900_000_000_000_000, max: 3_000_000_000_000_000 }),
)
const row = fc.record({
  document,
  micros,
  changed_micros: micros,
  owner: fc.option(fc.nat({ max: 1 })),
  tracked: fc.boolean(),
  expires_in_s: fc.option(fc.integer({ min: 1, max: 100_000_000 })),
  parent: fc.boolean(),
  forked_at_seq: fc.option(fc.constantFrom(0, 1, 9_007_199_254_740_991)),
})
type Stored = typeof row extends fc.Arbitrary<infer One> ? One : never
const identifier = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 8 })
  .filter((text) => text.isWellFormed() && !text.includes('\0'))
const page = fc.record({
  list: fc.constantFrom(...(['sessions', 'active', 'spaces', 'users'] as const)),
  filter: fc.constantFrom('none', 'user', 'document', 'both'),
  time_desc: fc.boolean(),
  limit: fc.constantFrom(1, 3, 200),
})

const log = useLog()
let connection: pg.Client
const database: Queryable = {
  query: async ({ text }, parameters) => (await connection.query(text, parameters as unknown[])).rows,
}
beforeAll(async () => {
  const types = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig
  connection = new pg.Client({ connectionString: log.url, types })
  await connection.connect()
  // Nothing may rest on how a connection writes times, but for the coordinator of a cluster, which passes them on so.
  if (inject('testServer').mode !== 'shared') await connection.query("SET datestyle = 'German, DMY'")
  await connection.query("SET timezone = 'Asia/Kathmandu'")
})
afterAll(() => connection.end())

async function insert(project_id: string, identifiers: string[], rows: Stored[]): Promise<void> {
  const at = (column: string) => `timestamptz '2026-01-01Z' + (x ->> '${column}')::bigint * interval '1 us'`
  const owners = identifiers.map(() => randomUUID())
  const given = rows.map((one) => ({ ...one, id: randomUUID(), owner: owners[one.owner ?? -1] }))
  const values = [project_id, JSON.stringify(given)]
  const from = 'FROM jsonb_array_elements($2::jsonb) AS x'
  await connection.query(
    `INSERT INTO users (project_id, id, identifier, created_at, updated_at)
     SELECT $1, u.id, u.identifier, timestamptz '2026-01-01Z', timestamptz '2026-01-01T00:00:00.1Z'
     FROM unnest($2::uuid[], $3::text[]) AS u (id, identifier)`,
    [project_id, owners, identifiers],
  )
  await connection.query(
    `INSERT INTO sessions (project_id, id, user_id, configs, disable_task_tracking, created_at, expires_in_s, parent_id, forked_from, forked_at_seq)
     SELECT $1, (x ->> 'id')::uuid, (x ->> 'owner')::uuid, (x ->> 'document')::jsonb, NOT (x ->> 'tracked')::boolean, ${at('micros')},
       (x ->> 'expires_in_s')::int, CASE WHEN (x ->> 'parent')::boolean THEN gen_random_uuid() END,
       CASE WHEN x ->> 'forked_at_seq' IS NOT NULL THEN gen_random_uuid() END, (x ->> 'forked_at_seq')::bigint ${from}`,
    values,
  )
  await connection.query(
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at)
     SELECT $1, (x ->> 'id')::uuid, 0, 0, ${at('changed_micros')} ${from}`,
    values,
  )
  await connection.query(
    `INSERT INTO learning_spaces (project_id, id, user_id, meta, created_at, updated_at)
     SELECT $1, (x ->> 'id')::uuid, (x ->> 'owner')::uuid, (x ->> 'document')::jsonb, ${at('micros')}, ${at('changed_micros')} ${from}`,
    values,
  )
  for (const list of [SESSION_LIST, SPACE_LIST])
    await connection.query(
      insertTerms(list, '$1', `(SELECT s.* FROM ${list.table} s WHERE s.project_id = $1)`),
      [project_id],
    )
  const { rows: heads } = await connection.query(
    'SELECT h.session_id, h.updated_at::text AS updated_at FROM session_heads h WHERE h.project_id = $1',
    [project_id],
  )
  await connection.query(ADD_ACTIVITY.statement.text, [
    project_id,
    heads.map(({ session_id }) => session_id),
    heads.map(({ updated_at }) => updated_at),
  ])
}

describe('the JSON of a list', () => {
  it('has the values that PostgreSQL gives each row, in order, with their positions, for hostile documents, identifiers and times', async () => {
    const property = fc.asyncProperty(
      fc.array(row, { maxLength: 8 }),
      fc.uniqueArray(identifier, { minLength: 2, maxLength: 2 }),
      fc.array(page, { minLength: 8, maxLength: 16 }),
      async (rows, identifiers, pages) => {
        const project_id = await log.newProject()
        await insert(project_id, identifiers, rows)
        for (const { list, filter, time_desc, limit } of pages) {
          const { json, from, at, document } = YARDSTICK[list]
          const [user] = list !== 'users' && ['user', 'both'].includes(filter) ? identifiers : []
          const contained =
            list !== 'users' && ['document', 'both'].includes(filter) ? '{"agent":"a"}' : undefined
          const order = time_desc ? 'DESC' : 'ASC'
          const { rows: expected } = await connection.query<Row>(
            `SELECT (${json})::text AS json, ${timestamp(at)} AS created_at, t.id FROM ${from}
             WHERE t.project_id = $1 AND ${document} @> $2::jsonb AND ($3::text IS NULL OR
               (to_jsonb(t) ->> 'user_id')::uuid = (SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $3))
             ORDER BY ${at} ${order}, t.id ${order} LIMIT $4`,
            [project_id, contained ?? '{}', user, limit + 1],
          )
          const position = { time_desc, limit, after: undefined }
          const given = { project_id, user, document: contained }
          const statement =
            list === 'users' ? listUsers(project_id, position) : filteredList(LISTS[list], given, position)
          const listed = await readList({ database, project_id }, statement)
          const { rows: read } = await connection.query<Row>(
            `SELECT (r ->> 'json')::jsonb::text AS json, r ->> 'created_at' AS created_at, r ->> 'id' AS id
             FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS a (r, n) ORDER BY n`,
            [JSON.stringify(listed)],
          )
          expect(read).toEqual(expected)
        }
      },
    )
    await fc.assert(property, { numRuns: 30 })
  }, 120_000)

  it('is the same where documents are so large that a page is read in pieces', async () => {
    const project_id = await log.newProject()
    const identifiers = ['a', 'b']
    const rows = Array.from({ length: 30 }, (_, n) => ({
      ...{ document: `{"agent":"a","c":"${'x'.repeat(60_000)}${n}"}`, micros: n % 7, changed_micros: n },
      ...{ owner: n % 2, tracked: true, expires_in_s: null, parent: false, forked_at_seq: null },
    }))
    await insert(project_id, identifiers, rows)
    for (const [document, limit] of [
      [undefined, 200],
      [undefined, 29],
      ['{"agent":"a"}', 28],
    ] as const) {
      const given = { project_id, user: undefined, document }
      for (const time_desc of [false, true]) {
        const idsOf = async (rows_max: number, after?: { created_at: string; id: string }) => {
          const position = { time_desc, limit: rows_max, after }
          return readList({ database, project_id }, filteredList(SESSIONS, given, position))
        }
        const whole = await idsOf(limit)
        expect(whole).toHaveLength(Math.min(limit + 1, 30))
        const one_by_one: Listed[] = []
        for (let at = 0; at < whole.length; at++) one_by_one.push((await idsOf(0, one_by_one.at(-1)))[0]!)
        expect(whole).toEqual(one_by_one)
      }
    }
  })
})
