import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Queryable } from '../../packages/kits/src/postgres/database.ts'
import { requestSettings } from '../../packages/kits/src/postgres/pool_settings.ts'
import { LogReader, UNLIMITED } from '../../packages/server/src/log/read/read_log.ts'
import { type EntryRun, insertLongSession } from '../harness/long_session.ts'
import { eventRequest, useLog } from './log_fixture.ts'
import { NO_PLANS, watched } from './watched_reads.ts'

/** Entries that a statement may look at, whatever its filter leaves out. */
const SCANNED_MAX = 10_000

/** As the service reads: every value as text. */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig

const log = useLog()
let connection: pg.Client
beforeAll(async () => {
  connection = new pg.Client({ connectionString: log.url })
  await connection.connect()
  const settings = requestSettings({ connectionString: log.url, distributed: NO_PLANS })
  for (const [setting, value] of Object.entries(settings)) await connection.query(`SET ${setting} = ${value}`)
})
afterAll(() => connection.end())

const run: fc.Arbitrary<EntryRun> = fc.oneof(
  fc.record({ count: fc.integer({ min: 1, max: 12_000 }), type: fc.constantFrom('frequent', 'other') }),
  fc.record({ count: fc.integer({ min: 1, max: 3 }), type: fc.constantFrom('rare', 'other') }),
  fc.record({ count: fc.integer({ min: 1, max: 2_000 }) }),
)
const page = fc.record({
  kind: fc.constantFrom(undefined, 'event' as const, 'message' as const),
  type: fc.constantFrom(undefined, 'frequent', 'rare', 'never'),
  time_desc: fc.boolean(),
  limit: fc.constantFrom(1, 2, 51, 1_001, Number.MAX_SAFE_INTEGER),
  above: fc.double({ min: 0, max: 1.1, noNaN: true }),
  below: fc.double({ min: 0, max: 1.1, noNaN: true }),
})

describe.skipIf(NO_PLANS)('reading a log', () => {
  it('returns what a model in memory returns, for random logs, filters, ranges, limits and directions, and no statement of it looks at more than a bounded number of entries', async () => {
    const project_id = await log.newProject()
    const property = fc.asyncProperty(
      fc.array(run, { maxLength: 9 }),
      fc.array(page, { minLength: 5, maxLength: 10 }),
      async (runs, pages) => {
        const session_id = await insertLongSession(log.url, project_id, runs)
        const entries = runs
          .flatMap(({ count, type }) => Array<string | undefined>(count).fill(type))
          .map((type, index) => ({ seq: index + 1, type, kind: type === undefined ? 'message' : 'event' }))
        for (const { above, below, ...asked } of pages) {
          const above_seq = Math.floor(above * entries.length)
          const below_seq = Math.ceil(below * entries.length) + 1
          const expected = entries.filter(
            ({ seq, type, kind }) =>
              seq > above_seq &&
              seq < below_seq &&
              (asked.kind === undefined || kind === asked.kind) &&
              (asked.type === undefined || type === asked.type),
          )
          if (asked.time_desc) expected.reverse()
          const looks: number[] = []
          const read: number[] = []
          const reader = new LogReader(watched(connection, 'entries', looks), { project_id, session_id })
          for await (const piece of reader.read('message_id', { above_seq, below_seq, ...asked }))
            read.push(...piece.map(({ seq }) => seq))
          expect(read).toEqual(expected.slice(0, asked.limit).map(({ seq }) => seq))
          expect(Math.max(0, ...looks)).toBeLessThanOrEqual(SCANNED_MAX)
        }
      },
    )
    await fc.assert(property, { numRuns: 6 })
  }, 120_000)

  it('goes on in many statements where a type is nowhere in a long log, and ends when nobody wants it', async () => {
    const project_id = await log.newProject()
    const session_id = await insertLongSession(log.url, project_id, [{ count: 45_000, type: 'note' }])
    const filtered = { type: 'never', above_seq: 0, below_seq: UNLIMITED, limit: 51 }
    for (const time_desc of [false, true]) {
      for (const wanted of [100, 2]) {
        const looks: number[] = []
        const isWanted = () => looks.length < wanted
        const database = watched(connection, 'entries', looks)
        const reader = new LogReader(database, { project_id, session_id }, undefined, isWanted)
        const pieces = reader.read('event', { ...filtered, time_desc })
        expect(await pieces.next()).toEqual({ done: true, value: undefined })
        expect(looks).toEqual([10_000, 10_000, 10_000, 10_000, 5_000].slice(0, wanted))
      }
    }
  })
})

it('returns the same entries of a log that fits into a piece and of one that has outgrown it since, in pieces', async () => {
  const project_id = await log.newProject()
  const session_id = await log.newSession(project_id)
  const node = log.newNode()
  const query: Queryable['query'] = async ({ text }, values) =>
    (await connection.query({ text, values: values as unknown[], types: AS_TEXT })).rows
  const database = { query, objects: undefined }
  const append = (characters: number) =>
    node.append(
      eventRequest(project_id, session_id, { data: JSON.stringify({ text: 'x'.repeat(characters) }) }),
    )
  const read = async (time_desc: boolean) => {
    const reader = new LogReader(database, { project_id, session_id })
    const pieces: number[][] = []
    for await (const piece of reader.read('item', {
      above_seq: 0,
      below_seq: UNLIMITED,
      limit: 51,
      time_desc,
    }))
      pieces.push(piece.map(({ seq }) => seq))
    return pieces
  }
  for (const characters of [10, 20, 600_000]) await append(characters)
  expect([await read(false), await read(true)]).toEqual([[[1, 2, 3]], [[3, 2, 1]]])
  for (const characters of [600_000, 600_000, 5]) await append(characters)
  for (let round = 0; round < 2; round += 1)
    expect([await read(false), await read(true)]).toEqual([
      [[1, 2, 3], [4], [5, 6]],
      [[6, 5], [4], [3, 2, 1]],
    ])
})
