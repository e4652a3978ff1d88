import { joinRuns } from '@annals/recall'
import fc from 'fast-check'
import type { Client } from 'pg'
import { expect, it } from 'vitest'
import { FIND_ENTRIES } from '../../packages/server/src/search/find_entries_queries.ts'
import { execute, withConnection } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'

/* Walks through the index of words, whose statements end after any time, against a model that sorts all entries. */

const log = useLog()
const NEWEST = ['infinity', null, null] as const
const SEGMENT = 40
const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString().replace('Z', '000Z')

/** Sessions, each with the words of its entries and how long after the one before they come: 0 makes ties. */
const sessionsOf = (most: number, entries: number) =>
  fc.array(
    fc.array(fc.record({ words: fc.subarray(['a', 'b', 'c']), after: fc.integer({ min: 0, max: 9 }) }), {
      minLength: 1,
      maxLength: entries,
    }),
    { minLength: 1, maxLength: most },
  )
const anySessions = fc.oneof(sessionsOf(6, 40), sessionsOf(60, 3))
/** What runs must have, what lines must be like and not like, and whether an entry with such words is found. */
type Query = [together: string, alike: string[], unlike: string[], isMatch: (words: string[]) => boolean]
const anyQuery = fc.constantFrom<Query>(
  ['a', ['% a %'], [], (words) => words.includes('a')],
  ['a & b', ['% a %', '% b %'], [], (words) => words.includes('a') && words.includes('b')],
  ['a', ['% a %'], ['% b %'], (words) => words.includes('a') && !words.includes('b')],
  ['a & c:*', ['% a %', '% c%'], [], (words) => words.includes('a') && words.includes('c')],
)
type Hit = [session_id: string, seq: number, created_at: string, bytes: number]

async function find(
  connection: Client,
  project: string,
  [together, alike, unlike]: Query,
  rest: Array<string | number | null>,
  sessions: string[] | null = null,
): Promise<{ hits: Hit[]; at: string[] | null }> {
  const filters = [null, sessions, null, null, null, null, '-infinity']
  const { rows } = await connection.query(FIND_ENTRIES.statement.text, [
    ...[project, together, alike, unlike, 'a', ...filters],
    ...rest,
    'infinity',
  ])
  return JSON.parse(rows[0].answer)
}

async function store(sessions: Array<Array<{ words: string[]; after: number }>>) {
  const project = await log.newProject()
  const entries = await Promise.all(
    sessions.map(async (given) => {
      const session_id = await log.newSession(project)
      let ms = 0
      return given.map(({ words, after }, index) => {
        ms += after
        return { session_id, seq: index + 1, ms, words }
      })
    }),
  )
  const all = entries.flat()
  const lasts = entries.map((given) => given.at(-1)!)
  const columns = (rows: object[], names: string[]) =>
    names.map((name) => rows.map((row) => row[name as never]))
  await execute(
    log.url,
    `INSERT INTO entries (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
     SELECT $1, x.session_id, x.seq, x.at, x.at, gen_random_uuid(), 2, 0, 'event', 'n', '{}'
     FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[]) AS x (session_id, seq, at)`,
    [project, ...columns(all, ['session_id', 'seq']), all.map(({ ms }) => at(ms))],
  )
  const runs = joinRuns(
    all.map(({ session_id, seq, ms, words }) => {
      const [first_at, last_at] = [at(ms), at(ms)]
      return {
        session_id,
        seq,
        last_seq: seq,
        segment: Math.floor(ms / SEGMENT),
        first_at,
        last_at,
        words: `=n ${words.join(' ')}`,
      }
    }),
  )
  await execute(
    log.url,
    `INSERT INTO search_entries (project_id, session_id, seq, last_seq, segment, first_at, last_at, words)
     SELECT $1, x.* FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::int[], $6::timestamptz[], $7::timestamptz[], $8::text[]) AS x`,
    [project, ...columns(runs, ['session_id', 'seq', 'last_seq', 'segment', 'first_at', 'last_at', 'words'])],
  )
  await execute(
    log.url,
    `INSERT INTO search_segments (project_id, segment, begins_at, entries, last_at)
     SELECT $1, n, CASE WHEN n = 0 THEN '-infinity' ELSE $3::timestamptz + n * $4 * interval '1 ms' END, 0, '-infinity'
     FROM generate_series(0, $2::int) AS n`,
    [project, Math.max(...runs.map(({ segment }) => segment)), at(0), SEGMENT],
  )
  await execute(
    log.url,
    `UPDATE session_heads AS h SET last_seq = x.seq, updated_at = x.at
     FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[]) AS x (session_id, seq, at)
     WHERE h.project_id = $1 AND h.session_id = x.session_id`,
    [project, ...columns(lasts, ['session_id', 'seq']), lasts.map(({ ms }) => at(ms))],
  )
  const newestFirst = all.toSorted(
    (a, b) => b.ms - a.ms || (a.session_id < b.session_id ? 1 : -1) || b.seq - a.seq,
  )
  return { project, newestFirst }
}

it(
  'gives each entry that matches once, the newest first, whatever the size of a page and the time it has',
  () =>
    withConnection(log.url, (connection) =>
      fc.assert(
        fc.asyncProperty(
          anySessions,
          anyQuery,
          fc.integer({ min: 1, max: 9 }),
          fc.constantFrom(-1, 1_000),
          fc.boolean(),
          async (sessions, query, limit, ms, isOfSessions) => {
            const { project, newestFirst } = await store(sessions)
            const ids = [...new Set(newestFirst.map(({ session_id }) => session_id))].sort()
            const searched = ids.filter((_, index) => !isOfSessions || index % 3 > 0)
            const found: string[] = []
            let place: readonly (string | number | null)[] = NEWEST
            for (;;) {
              const { hits, at: rest } = await find(
                connection,
                project,
                query,
                [...place, limit, ms],
                isOfSessions ? searched : null,
              )
              found.push(...hits.map(([session, seq]) => `${session} ${seq}`))
              if (hits.length < limit && !rest) break
              const [session, seq, created_at] = hits.at(-1) ?? []
              place = hits.length === limit ? [created_at!, session!, seq!] : rest!
              expect(found.length).toBeLessThanOrEqual(newestFirst.length)
            }
            const [, , , isMatch] = query
            const expected = newestFirst.filter(
              ({ session_id, words }) => isMatch(words) && searched.includes(session_id),
            )
            expect(found).toEqual(expected.map(({ session_id, seq }) => `${session_id} ${seq}`))
          },
        ),
        { numRuns: 40 },
      ),
    ),
  60_000,
)

it('returns something of a word that newest entries have, though its time is over before it has looked', () =>
  withConnection(log.url, async (connection) => {
    const { project } = await store([Array.from({ length: 40 }, () => ({ words: ['a'], after: 9 }))])
    const { hits, at: rest } = await find(
      connection,
      project,
      ['a', ['% a %'], [], () => true],
      [...NEWEST, 40, -1],
    )
    expect(hits.map(([, seq]) => seq)).toEqual(hits.map((_, index) => 40 - index))
    expect(hits.length).toBeGreaterThan(0)
    expect(rest).not.toBeNull()
  }))
