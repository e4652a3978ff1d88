import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { carryOut } from '../../packages/kits/src/changes/carry_out.ts'
import type { Consumer } from '../../packages/kits/src/changes/consumer.ts'
import { SWITCH, SWITCH_ON } from '../../packages/kits/src/changes/project_consumer_queries.ts'
import { keepConsumer, retire } from '../../packages/kits/src/changes/project_consumers.ts'
import { DatabaseAway, type DatabasePool } from '../../packages/kits/src/postgres/database.ts'
import { APPEND_ENTRIES } from '../../packages/server/src/log/append/append_queries.ts'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { planFlush } from '../../packages/server/src/log/append/flush_plan.ts'
import { execute, queryRows, withConnection } from '../harness/sql.ts'
import { MARKED, useChanges, WITNESS, witness } from './changes_fixture.ts'
import { batchRequest, eventRequest, useLog } from './log_fixture.ts'

/* Consumers of changes on a real database. */

const log = useLog()
const { open, start, newProject, seenOf, marksOf, seenInTheEnd } = useChanges(log)
let appender: Appender

beforeAll(() => {
  appender = log.newNode()
})

const WAIT = { timeout: 20_000, interval: 10 }
const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1))

describe('a session that is written to while consumers at two nodes read it', () => {
  it('is read to its head, each entry once, whatever fails, stalls or ends its lease', async () => {
    const project = await newProject()
    let trouble: () => Promise<void> = async () => {}
    for (let node = 0; node < 2; node++) start(witness(() => trouble()))
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
      await connection.query(APPEND_ENTRIES.statement.text, parameters as unknown[])
      start(witness())
      await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [session]: ['1'] }), {
        timeout: 10_000,
      })
      await connection.query('COMMIT')
    })
    expect(await seenInTheEnd(project)).toEqual({ [session]: ['1', '2'] })
  })
})

describe('a project that a consumer is switched on for', () => {
  it('scans old sessions, and those written by nodes that do not know the consumer yet', async () => {
    const project = await log.newProject()
    const [early, late] = [await log.newSession(project), await log.newSession(project)]
    await appender.append(eventRequest(project, early))
    const changes = start(witness(), { settle_s: 1 })
    await changes.prepare({ database: open(1), project_id: project }, WITNESS)
    expect(await seenOf(project)).toEqual({ [early]: ['1'] })
    // As by a node that still takes the project for one without consumers.
    await appender.append(eventRequest(project, late))
    expect(await marksOf(project)).toEqual([])
    await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [early]: ['1'], [late]: ['1'] }), {
      timeout: 20_000,
    })
  }, 30_000)
})

describe('a project that is written to all the time', () => {
  it('has its other sessions looked through all the same', async () => {
    const project = await log.newProject()
    const [old, busy] = [await log.newSession(project), await log.newSession(project)]
    await appender.append(eventRequest(project, old))
    const changes = start(witness(), { poll_ms: 100, round_ms: 200 })
    let isOver = false
    const write = async () => {
      while (!isOver) await appender.append(eventRequest(project, busy, { unmarked_until: MARKED }))
    }
    const writing = write()
    try {
      const database = open(1)
      await vi.waitFor(() => changes.prepare({ database, project_id: project }, WITNESS), {
        timeout: 20_000,
      })
      expect((await seenOf(project))[old]).toEqual(['1'])
    } finally {
      isOver = true
      await writing
    }
  }, 30_000)
})

describe('the mark of a session that was read in part', () => {
  it('stands for no time before which there is something to read', async () => {
    const project = await newProject()
    const session = await log.newSession(project)
    const marks = Array.from({ length: 400 }, () => 'x')
    for (let part = 0; part < 2; part++)
      await appender.append({ ...batchRequest(project, session, marks), unmarked_until: MARKED })
    let pieces = 0
    let goOn = () => {}
    const looked = new Promise<void>((resolve) => (goOn = resolve))
    const consumer = witness()
    start(
      {
        ...consumer,
        consume: async (work) => {
          // Other projects of this file may have something left to do.
          if (work.project_id === project && pieces++ > 0) await looked
          return consumer.consume(work)
        },
      },
      { lease_s: 60 },
    )
    await vi.waitFor(() => expect(pieces).toBe(2), { timeout: 10_000 })
    const [mark] = await marksOf(project)
    const { entries } = await log.readSession(project, session)
    const seen = (await seenOf(project))[session]!
    expect(seen.length).toBeLessThan(entries.length)
    expect(mark!.marked_at as number).toBeLessThanOrEqual(Number(entries[seen.length]!.created_at))
    goOn()
    expect(await seenInTheEnd(project)).toEqual({ [session]: numbers(800) })
  })
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
    const changes = start(fussy)
    await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [good]: ['1'] }), {
      timeout: 20_000,
    })
    expect(changes.load().get(WITNESS)!.failures).toBeGreaterThan(0)
    isBorn = true
    expect(await seenInTheEnd(project)).toEqual({ [bad]: ['1'], [good]: ['1'] })
  }, 60_000)
})

describe('a node that is stopped', () => {
  it('cuts off a consumer that does not end, and hands back its session, which another node takes up', async () => {
    const project = await newProject()
    const session = await log.newSession(project)
    await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    const stuck = vi.fn(
      ({ signal }: { signal: AbortSignal }) =>
        new Promise<undefined>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    )
    // The lease is far longer than the test waits.
    const changes = start({ ...witness(), consume: stuck }, { lease_s: 600 })
    await vi.waitFor(() => expect(stuck).toHaveBeenCalled(), { timeout: 10_000 })
    await changes.stop()
    expect(await seenOf(project)).toEqual({})
    start(witness())
    expect(await seenInTheEnd(project)).toEqual({ [session]: ['1'] })
  }, 30_000)
})

describe('a node that takes up sessions', () => {
  it.each(['is not told so', 'is stopped just then'])('hands them back if it %s', async (how) => {
    const project = await newProject()
    const session = await log.newSession(project)
    await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    const stop = new AbortController()
    const database = open(1)
    const onFailure = () => {}
    const job = { database, consumer: witness(), project_id: project, signal: stop.signal, onFailure }
    const lost = new DatabaseAway(true, new Error('the connection broke'))
    const query: DatabasePool['query'] = async (statement, parameters) => {
      const rows = await database.query(statement, parameters)
      if (!statement.name.startsWith('lease_marks_for_')) return rows
      if (how === 'is not told so') throw lost
      stop.abort()
      throw stop.signal.reason
    }
    await expect(carryOut({ ...job, database: { ...database, query } })).rejects.toThrow()
    const another = { ...job, signal: new AbortController().signal }
    expect(await carryOut(another)).toMatchObject({ sessions: 1, left: 0 })
    expect(await seenOf(project)).toEqual({ [session]: ['1'] })
  })
})

describe('a consumer that is being taken apart', () => {
  it('stays switched on if somebody switches it on before that is done', async () => {
    const project = await log.newProject()
    const database = open(1)
    const owned = [project, WITNESS]
    await keepConsumer({ database, project_id: project }, WITNESS)
    await execute(log.url, SWITCH.off.text, owned)
    await withConnection(log.url, async (connection) => {
      await connection.query('BEGIN')
      await connection.query(SWITCH_ON.project.text, owned)
      const retired = retire({ database, project_id: project }, witness(), new AbortController().signal)
      // On a cluster, what waits for a lock may wait for it on another machine.
      const waiting = `SELECT FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '%array_remove(p.consumers%' AND datname = current_database()`
      await vi.waitFor(async () => expect(await queryRows(log.url, waiting)).toHaveLength(1), 10_000)
      await connection.query(SWITCH.on.text, owned)
      await connection.query('COMMIT')
      await retired
    })
    const state = `SELECT p.consumers, c.used_at = 'infinity' AND c.retired_at IS NULL AS is_on
      FROM projects p JOIN project_consumers c ON c.project_id = p.id WHERE p.id = $1`
    expect(await queryRows(log.url, state, [project])).toEqual([{ consumers: [WITNESS], is_on: true }])
  })
})

describe('a session that is gone', () => {
  it('leaves no mark, though it had one', async () => {
    const project = await newProject()
    await execute(
      log.url,
      `INSERT INTO change_marks (project_id, consumer, session_id, marked_at, due_at, failures) VALUES ($1, '${WITNESS}', $2, now(), now(), 0)`,
      [project, randomUUID()],
    )
    start(witness())
    expect(await seenInTheEnd(project)).toEqual({})
  })

  it('leaves nothing that its consumer wrote while it was being deleted', async () => {
    const project = await newProject()
    const session = await log.newSession(project)
    await appender.append(eventRequest(project, session, { unmarked_until: MARKED }))
    // Its rows go as where a session is deleted: after its head, and before the consumer has written.
    await withConnection(log.url, async (deleting) => {
      let isFirst = true
      start(
        witness(async () => {
          if (!isFirst) return
          isFirst = false
          await deleting.query('BEGIN')
          await deleting.query('DELETE FROM session_heads WHERE project_id = $1 AND session_id = $2', [
            project,
            session,
          ])
        }),
      )
      await vi.waitFor(async () => expect(await seenOf(project)).toEqual({ [session]: ['1'] }), WAIT)
      await deleting.query('COMMIT')
    })
    expect(await seenInTheEnd(project)).toEqual({})
    const cursors = 'SELECT seq FROM change_cursors WHERE project_id = $1'
    expect(await queryRows(log.url, cursors, [project])).toEqual([])
  })
})
