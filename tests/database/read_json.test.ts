import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PIECE_BYTES_MAX } from '../../packages/kits/src/limits.ts'
import type { Queryable, Row } from '../../packages/kits/src/postgres/database.ts'
import { goodLeaf, jsonTree, write } from '../../packages/messages/test/json/json_texts.ts'
import { LogReader, UNLIMITED } from '../../packages/server/src/log/read/read_log.ts'
import { useLog } from './log_fixture.ts'

/*
 * What reading a log gives, as JSON that PostgreSQL makes of one entry at a time: the straightforward way, and the
 * yardstick for the one that carries pages as columns.
 */
const timestamp = (column: string) =>
  `to_char(e.${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
const TIMES = `'created_at', ${timestamp('created_at')}, 'updated_at', ${timestamp('updated_at')}`
const META = 'coalesce(e.patched_meta, e.meta)'
const EVENT = `json_build_object('id', e.id, 'project_id', e.project_id, 'session_id', e.session_id, 'type', e.type,
  'data', e.data, 'seq', e.seq, ${TIMES})`
const ITEM = `CASE e.kind WHEN 'event' THEN json_build_object('kind', e.kind, 'seq', e.seq, 'id', e.id,
    'project_id', e.project_id, 'session_id', e.session_id, 'type', e.type, 'data', e.data, ${TIMES})
  ELSE json_build_object('kind', e.kind, 'seq', e.seq, 'id', e.id, 'session_id', e.session_id,
    'parent_id', e.parent_id, 'role', e.role, 'meta', ${META}, 'task_id', NULL, 'session_task_process_status',
    CASE WHEN s.disable_task_tracking THEN 'disable_tracking' ELSE 'pending' END, 'format', e.format, 'blob', e.data, ${TIMES})
  END`
const YARDSTICK = {
  event: `${EVENT}::text AS json`,
  item: `(${ITEM})::text AS json, e.kind`,
  message: `e.data::text AS json, e.id, e.parent_id, e.format, e.role, ${META}::text AS meta, e.tokens`,
  message_id: 'e.id AS json',
  message_meta: `${META}::text AS json`,
}

const text = jsonTree(goodLeaf).map((tree) => write(tree))
const object = text.map((json) => `{"a":${json},"b\\u0001":[]}`)
const type = fc
  .oneof(fc.constantFrom('a', 'b'), fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }))
  .filter((value) => value.isWellFormed() && !value.includes('\0'))
const micros = fc.oneof(
  fc.constantFrom(0, 1, 120_000, 999_999, 100_000),
  fc.nat({ max: 3_000_000_000_000_000 }),
)
type StoredEntry = typeof entry extends fc.Arbitrary<infer Entry> ? Entry : never
const entry = fc.record({
  type: fc.option(type),
  data: object,
  meta: object,
  patched: fc.option(object),
  micros,
  changed_micros: fc.option(micros),
  // What the bound of a piece is made of: what an entry is said to have.
  bytes: fc.constantFrom(100, 300_000, 700_000, 1_500_000),
})
const page = fc.record({
  view: fc.constantFrom(...(['event', 'item', 'message', 'message_id', 'message_meta'] as const)),
  filter: fc.constantFrom({}, { kind: 'event' as const }, { kind: 'message' as const }, { type: 'a' }),
  time_desc: fc.boolean(),
  limit: fc.constantFrom(1, 3, UNLIMITED),
})

const log = useLog()
let connection: pg.Client
beforeAll(async () => {
  const types = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig
  connection = new pg.Client({ connectionString: log.url, types })
  await connection.connect()
  // Nothing may rest on how a connection writes times.
  await connection.query(`SET datestyle = 'German, DMY'; SET timezone = 'Asia/Kathmandu'`)
})
afterAll(() => connection.end())

async function insert(session: string[], entries: StoredEntry[], is_counted: boolean): Promise<void> {
  const at = (column: string) => `timestamptz '2026-01-01Z' + (x ->> '${column}')::bigint * interval '1 us'`
  await connection.query(
    `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens, kind, type,
       role, format, data, meta, patched_meta)
     SELECT $1, $2, n, ${at('micros')}, coalesce(${at('changed_micros')}, ${at('micros')}), gen_random_uuid(),
       CASE WHEN n % 3 = 0 THEN gen_random_uuid() END, (x ->> 'bytes')::int, n, CASE WHEN x ->> 'type' IS NULL THEN 'message' ELSE 'event' END, x ->> 'type',
       CASE WHEN x ->> 'type' IS NULL THEN 'user' END, CASE WHEN x ->> 'type' IS NULL THEN 'gemini' END, (x ->> 'data')::jsonb,
       CASE WHEN x ->> 'type' IS NULL THEN (x ->> 'meta')::jsonb END, CASE WHEN x ->> 'type' IS NULL THEN (x ->> 'patched')::jsonb END
     FROM jsonb_array_elements($3::jsonb) WITH ORDINALITY AS a (x, n)`,
    [...session, JSON.stringify(entries)],
  )
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
  await connection.query(
    'UPDATE session_heads SET last_seq = $3, bytes = $4, counted = $5 WHERE project_id = $1 AND session_id = $2',
    [...session, entries.length, bytes, is_counted ? entries.length : 0],
  )
}

/** The row without insignificant space, which the yardstick has around the names of fields. */
function compact(row: Row): Row {
  const { json } = row
  return { ...row, json: json!.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, string) => string ?? '') }
}

describe('the JSON of a log', () => {
  it('is to the byte what PostgreSQL makes of each entry, in pieces of bounded size, for hostile JSON, types and times', async () => {
    const project_id = await log.newProject()
    const database: Queryable = {
      query: async ({ text }, parameters) => (await connection.query(text, parameters as unknown[])).rows,
    }
    const property = fc.asyncProperty(
      fc.array(entry, { maxLength: 12 }),
      fc.array(page, { minLength: 6, maxLength: 12 }),
      fc.boolean(),
      fc.boolean(),
      async (entries, pages, is_counted, untracked) => {
        const session_id = await log.newSession(project_id, randomUUID())
        const session = [project_id, session_id]
        await connection.query(
          'UPDATE sessions SET disable_task_tracking = $3 WHERE project_id = $1 AND id = $2',
          [...session, untracked],
        )
        await insert(session, entries, is_counted)
        for (const { view, filter, time_desc, limit } of pages) {
          const messages = view.startsWith('message') && { kind: 'message' as const, type: undefined }
          const asked = { ...filter, ...(view === 'event' && { kind: 'event' as const }), ...messages }
          const { rows } = await connection.query(
            `SELECT e.seq, ${YARDSTICK[view]} FROM entries e JOIN sessions s ON s.project_id = e.project_id AND s.id = e.session_id
             WHERE e.project_id = $1 AND e.session_id = $2 AND ($3::text IS NULL OR e.kind = $3) AND ($4::text IS NULL OR e.type = $4)
             ORDER BY e.seq ${time_desc ? 'DESC' : ''} LIMIT $5`,
            [...session, asked.kind, asked.type, limit],
          )
          const range = { above_seq: 0, below_seq: UNLIMITED }
          const read: Row[] = []
          const reader = new LogReader(database, { project_id, session_id })
          for await (const piece of reader.read(view, { ...asked, ...range, time_desc, limit })) {
            const bytes = piece.reduce((sum, { seq }) => sum + entries[seq - 1]!.bytes, 0)
            if (piece.length > 1) expect(bytes).toBeLessThanOrEqual(PIECE_BYTES_MAX)
            for (const { seq, tokens, kind, key: _, created_at, ...rest } of piece) {
              // The log is the same as before, by what is shown of an entry.
              const again = new LogReader(database, { project_id, session_id }, { seq, created_at })
              await again.read('message_id', { ...range, time_desc, limit: 1 }).next()
              read.push({
                seq: String(seq),
                ...(tokens !== undefined && { tokens: String(tokens) }),
                ...(view === 'item' && { kind: kind! }),
                ...rest,
              } as Row)
            }
          }
          expect(reader.last_seq).toBe(entries.length)
          expect(read.map(compact)).toEqual(rows.map(compact))
        }
      },
    )
    await fc.assert(property, { numRuns: 40 })
  }, 120_000)
})
