import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RETRACTION_TYPE, type Retraction } from '../../packages/server/src/log/append/append_request.ts'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { insertLongSession } from '../harness/long_session.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { batchRequest, eventRequest, useLog } from './log_fixture.ts'
import { counted, NO_PLANS } from './watched_reads.ts'

/*
 * What a retraction costs, counted and not timed: entries that PostgreSQL reads, with statistics that are older than the
 * session.
 */

const LONG = 10_000
/** For each entry that is retracted: it is found, shown, and looked at beside others. */
const READ_PER_ENTRY = 4
/** What the planner looks up in indexes, and what is read however little is retracted. */
const READ_ANYWAY = 50

const log = useLog()
let connection: pg.Client
let node: Appender
let project: string
const reads: number[] = []

beforeAll(async () => {
  connection = new pg.Client({ connectionString: log.url })
  await connection.connect()
  const database = counted(() => connection, ['entries'], reads)
  node = log.newNode({ database: { of: () => database } })
  project = await log.newProject()
  await execute(log.url, 'ALTER TABLE entries SET (autovacuum_enabled = off)')
  await log.newNode().append(eventRequest(project, await log.newSession(project)))
  await execute(log.url, 'ANALYZE')
})
afterAll(() => connection.end())

const push = (session: string, count: number) =>
  node.append(
    batchRequest(
      project,
      session,
      Array.from({ length: count }, () => randomUUID()),
    ),
  )

/** The seqs that are retracted, and how many entries were read for that. */
async function retract(session: string, retraction: Retraction): Promise<{ seqs: number[]; read: number }> {
  const { entries, ...request } = eventRequest(project, session, { data: '{"seqs":[]}' })
  const event = { ...entries[0]!, type: RETRACTION_TYPE }
  reads.length = 0
  const { entries: answers } = await node.append({
    ...request,
    kind: 'entries',
    entries: [event],
    retraction,
  })
  const { data } = JSON.parse(answers[0]!.json) as { data: { seqs: number[] } }
  return { seqs: data.seqs, read: reads.reduce((sum, one) => sum + one, 0) }
}

describe.skipIf(NO_PLANS)('a retraction', () => {
  const every: Array<[string, Retraction, number]> = [
    ['the last entry', { last: 1 }, 1],
    ['the last 200', { last: 200 }, 200],
    ['the last messages', { last: 20, kind: 'message' }, 20],
    ['some by their ids', { seqs: [1, 300, 7_000] }, 3],
    ['all after a seq', { after_seq: LONG - 100 }, 100],
  ]
  it.each(every)('of %s reads about as many entries of a long log as it retracts', async (_, how, count) => {
    const runs = Array.from({ length: 40 }, (_, n) => ({ count: LONG / 40, ...(n % 2 && { type: 'note' }) }))
    const session = await insertLongSession(log.url, project, runs)
    const { seqs, read } = await retract(session, how)
    expect(seqs).toHaveLength(count)
    expect(read).toBeGreaterThan(count)
    expect(read).toBeLessThan(READ_PER_ENTRY * count + READ_ANYWAY)
  })

  it('reads what was retracted before once, and not each time that entries are pushed and popped', async () => {
    const session = await insertLongSession(log.url, project, [{ count: LONG, type: 'note' }])
    expect((await retract(session, { after_seq: 5 })).seqs).toHaveLength(LONG - 5)
    const pushAndPop = async () => {
      await push(session, 3)
      const popped = [await retract(session, { last: 1 }), await retract(session, { last: 1 })]
      await push(session, 1)
      return [...popped, await retract(session, { last: 2 })].map(({ read }) => read)
    }
    for (let round = 0; round < 20; round++)
      expect(Math.max(...(await pushAndPop()))).toBeLessThan(READ_ANYWAY)
    // As a copy or an import leaves it: nothing is known of what retractions left.
    await execute(log.url, 'UPDATE entries SET live_seq = NULL WHERE session_id = $1', [session])
    expect(Math.max(...(await pushAndPop()))).toBeGreaterThan(LONG)
    expect(Math.max(...(await pushAndPop()))).toBeLessThan(READ_ANYWAY)
    expect((await retract(session, { last: 9 })).seqs).toEqual([1, 2, 3, 4, 5])
  })

  const small = fc.integer({ min: 1, max: 4 })
  const step = fc.oneof(
    fc.record({ push: small }),
    fc.record({ last: small }),
    fc.record({ last: small, type: fc.constant('marked') }),
    fc.record({ back: fc.integer({ min: 0, max: 6 }) }),
    fc.record({ nth: fc.array(fc.nat(30), { minLength: 1, maxLength: 3 }) }),
  )
  it('takes the newest live entries, whatever was pushed and retracted before, and leaves a floor above which none is live', async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      const session = await log.newSession(project)
      const live: number[] = []
      let last_seq = 0
      for (const asked of steps) {
        if ('push' in asked) {
          await push(session, asked.push)
          for (let n = 0; n < asked.push; n++) live.push(++last_seq)
          continue
        }
        const how = retractionOf(asked, live, last_seq)
        const due = 'last' in how ? live.slice(-how.last) : live.filter(isDueIn(how))
        expect((await retract(session, how)).seqs).toEqual(due)
        live.splice(0, live.length, ...live.filter((seq) => !due.includes(seq)))
        last_seq += 1
      }
      const floors = await queryRows<{ seq: string; live_seq: string }>(
        log.url,
        'SELECT seq, live_seq FROM entries WHERE session_id = $1 AND type = $2',
        [session, RETRACTION_TYPE],
      )
      for (const { seq, live_seq } of floors)
        expect(live.filter((one) => one > Number(live_seq) && one < Number(seq))).toEqual([])
    })
    await fc.assert(property, { numRuns: 15 })
  }, 60_000)
})

/** A step as a request has it: so far back from the end, or the live entries at some places. */
function retractionOf(
  asked: { last: number; type?: string } | { back: number } | { nth: number[] },
  live: number[],
  last_seq: number,
): Retraction {
  if ('back' in asked) return { after_seq: Math.max(last_seq - asked.back, 0) }
  if ('nth' in asked) return { seqs: asked.nth.flatMap((n) => live[n % Math.max(live.length, 1)] ?? []) }
  return asked
}

const isDueIn = (how: Exclude<Retraction, { last: number }>) => (seq: number) =>
  'after_seq' in how ? seq > how.after_seq : how.seqs.includes(seq)
