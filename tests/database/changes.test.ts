import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Changes, type ChangesOptions } from '../../packages/server/src/changes/changes.ts'
import type { Consumer } from '../../packages/server/src/changes/consumer.ts'
import { APPEND_MARKED_ENTRIES } from '../../packages/server/src/log/append/append_queries.ts'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { planFlush } from '../../packages/server/src/log/append/flush_plan.ts'
import { type DatabasePool, openDatabase } from '../../packages/server/src/postgres/database.ts'
import { planned } from '../../packages/server/src/postgres/statement.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { batchRequest, eventRequest, useLog } from './log_fixture.ts'

/*
 * Consumers of changes on a real database. The consumer here writes down each entry that it is given, in the transaction
 * that moves its cursor: one that is given twice in this way is refused by the table's key.
 */

const MARKED = Number.NEGATIVE_INFINITY
const log = useLog()
const logger = pino({ level: 'silent' })
const undo: Array<() => Promise<void>> = []
let appender: Appender

beforeAll(async () => {
  appender = log.newNode()
  await execute(log.url, 'CREATE SCHEMA witness')
  await execute(
    log.url,
    'CREATE TABLE witness.seen (project_id uuid, session_id uuid, seq bigint, PRIMARY KEY (project_id, session_id, seq))',
  )
})
// Other files look at all tables of the product, and all may share a database.
afterAll(() => execute(log.url, 'DROP SCHEMA witness CASCADE'))
afterEach(async () => {
  for (const end of undo.splice(0)) await end()
})

const WRITE = planned(
  'write_seen',
  'INSERT INTO witness.seen AS s (project_id, session_id, seq) SELECT $1, $2, unnest($3::bigint[])',
)

/** Writes down what it is given, after whatever `before` does. */
function witness(before: () => Promise<void> = async () => {}): Consumer {
  return {
    name: 'witness',
    sessions_max: 3,
    readsEntries: true,
    erase: [],
    consume: async ({ project_id, sessions }) => {
      await before()
      return async (connection) => {
        for (const { session_id, entries } of sessions)
          await connection.query(WRITE, [project_id, session_id, entries.map(({ seq }) => seq)])
      }
    },
  }
}

function startChanges(consumer: Consumer, more: Partial<ChangesOptions> = {}): Changes {
  const abort = new AbortController()
  const database: DatabasePool = openDatabase({
    target: { connectionString: log.url },
    connections_max: 2,
    wait_ms_max: 5_000,
    statement_ms_max: 20_000,
    signal: abort.signal,
  })
  const pace = { settle_s: 60, poll_ms: 20, round_ms: 1, lease_s: 1 }
  const changes = new Changes({ database, abort, consumers: [consumer], logger, ...pace, ...more })
  undo.push(async () => {
    await changes.stop()
    await database.close()
  })
  return changes
}

async function newProject(): Promise<string> {
  const project = await log.newProject()
  await execute(log.url, `UPDATE projects SET consumers = '{witness}' WHERE id = $1`, [project])
  return project
}

async function seenOf(project: string): Promise<Record<string, string[]>> {
  const rows = await queryRows<{ session_id: string; seqs: string[] }>(
    log.url,
    'SELECT session_id, array_agg(seq ORDER BY seq) AS seqs FROM witness.seen WHERE project_id = $1 GROUP BY session_id',
    [project],
  )
  return Object.fromEntries(rows.map(({ session_id, seqs }) => [session_id, seqs]))
}

const marksOf = (project: string) =>
  queryRows(log.url, 'SELECT session_id FROM change_marks WHERE project_id = $1', [project])

/** Waits until no session is marked, and gives what the consumer has seen. */
async function seenInTheEnd(project: string) {
  await vi.waitFor(async () => expect(await marksOf(project)).toEqual([]), { timeout: 20_000, interval: 10 })
  return seenOf(project)
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1))

describe('a session that is written to while consumers at two nodes read it', () => {
  it('is read to its head, each entry once, whatever fails, stalls or ends its lease', async () => {
    const project = await newProject()
    let trouble: () => Promise<void> = async () => {}
    for (let node = 0; node < 2; node++) startChanges(witness(() => trouble()))
    const wave = fc.array(
      fc.record({ session: fc.nat(2), entries: fc.integer({ min: 1, max: 250 }), pause_ms: fc.nat(4) }),
      {
        minLength: 1,
        maxLength: 12,
      },
    )
    const troubles = fc.constantFrom('none', 'none', 'fails', 'stalls', 'outlives its lease')
    await fc.assert(
      fc.asyncProperty(wave, troubles, async (appends, how) => {
        const sessions = [
          await log.newSession(project),
          await log.newSession(project),
          await log.newSession(project),
        ]
        let left = how === 'none' ? 0 : 1
        trouble = async () => {
          if (left-- <= 0) return
          if (how === 'fails') throw new Error('the consumer fails')
          await new Promise((resolve) => setTimeout(resolve, how === 'stalls' ? 50 : 1_200))
        }
        const counts = new Map<string, number>()
        const sent: Promise<unknown>[] = []
        for (const { session, entries, pause_ms } of appends) {
          const id = sessions[session]!
          counts.set(id, (counts.get(id) ?? 0) + entries)
          const marks = Array.from({ length: entries }, () => 'x')
          sent.push(appender.append({ ...batchRequest(project, id, marks), unmarked_until: MARKED }))
          await new Promise((resolve) => setTimeout(resolve, pause_ms))
        }
        await Promise.all(sent)
        const seen = await seenInTheEnd(project)
        for (const [id, count] of counts) expect(seen[id]).toEqual(numbers(count))
      }),
      { numRuns: 40, interruptAfterTimeLimit: 6_000 },
    )
  }, 60_000)
})

describe('an append that finds the mark there while a consumer is about to clear it', () => {
  it('is seen, though it is committed only when the consumer is done', async () => {
    const project = await newProject()
    const session = await log.newSession(project)
    await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    const request = eventRequest(project, session, { unmarked_until: MARKED })
    const { parameters } = planFlush(project, [{ request, known: new Map() }])
    await withConnection(log.url, async (connection) => {
      await connection.query('BEGIN')
      await connection.query(APPEND_MARKED_ENTRIES.statement.text, parameters as unknown[])
      startChanges(witness())
      await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [session]: ['1'] }), {
        timeout: 10_000,
      })
      await connection.query('COMMIT')
    })
    expect(await seenInTheEnd(project)).toEqual({ [session]: ['1', '2'] })
  })
})

describe('a project that a consumer is switched on for', () => {
  it('has every session seen: those before, and one that a node in ignorance wrote to behind the first look', async () => {
    const project = await log.newProject()
    const [early, late] = [await log.newSession(project), await log.newSession(project)]
    await appender.append(eventRequest(project, early))
    const changes = startChanges(witness(), { settle_s: 1 })
    const database = openDatabase({
      target: { connectionString: log.url },
      connections_max: 1,
      wait_ms_max: 5_000,
      statement_ms_max: 20_000,
    })
    undo.push(() => database.close())
    await changes.prepare(database, project, 'witness')
    expect(await seenOf(project)).toEqual({ [early]: ['1'] })
    // As by a node that still takes the project for one without consumers.
    await appender.append(eventRequest(project, late))
    expect(await marksOf(project)).toEqual([])
    await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [early]: ['1'], [late]: ['1'] }), {
      timeout: 20_000,
    })
  }, 30_000)
})

describe('a session that a consumer cannot bear', () => {
  it('holds up no other, and is tried again', async () => {
    const project = await newProject()
    const [bad, good] = [await log.newSession(project), await log.newSession(project)]
    let isBorn = false
    const consumer = witness()
    const fussy: Consumer = {
      ...consumer,
      consume: async (work) => {
        if (!isBorn && work.sessions.some(({ session_id }) => session_id === bad))
          throw new Error('not this one')
        return consumer.consume(work)
      },
    }
    for (const session of [bad, good])
      await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    const changes = startChanges(fussy)
    await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [good]: ['1'] }), {
      timeout: 20_000,
    })
    expect(changes.load().get('witness')!.failures).toBeGreaterThan(0)
    isBorn = true
    expect(await seenInTheEnd(project)).toEqual({ [bad]: ['1'], [good]: ['1'] })
  }, 60_000)
})

describe('a node that is stopped', () => {
  it('cuts off a consumer that does not end, and another node takes up the session when the lease is over', async () => {
    const project = await newProject()
    const session = await log.newSession(project)
    await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    const stuck = vi.fn(
      ({ signal }: { signal: AbortSignal }) =>
        new Promise<undefined>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    const changes = startChanges({ ...witness(), consume: stuck })
    await vi.waitFor(() => expect(stuck).toHaveBeenCalled(), { timeout: 10_000 })
    await changes.stop()
    expect(await seenOf(project)).toEqual({})
    startChanges(witness())
    expect(await seenInTheEnd(project)).toEqual({ [session]: ['1'] })
  }, 30_000)
})

describe('a session that is gone', () => {
  it('leaves no mark, though it had one', async () => {
    const project = await newProject()
    await execute(
      log.url,
      `INSERT INTO change_marks (project_id, consumer, session_id, marked_at, due_at, failures) VALUES ($1, 'witness', $2, now(), now(), 0)`,
      [project, randomUUID()],
    )
    startChanges(witness())
    expect(await seenInTheEnd(project)).toEqual({})
  })
})
