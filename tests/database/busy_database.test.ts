import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { expect, it, vi } from 'vitest'
import { type Database, DatabaseAway } from '../../packages/kits/src/postgres/database.ts'
import { Learner } from '../../packages/server/src/learning/model/learner.ts'
import type { AskModel } from '../../packages/server/src/learning/model/openai_model.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'
import { MARKED, useChanges, witness } from './changes_fixture.ts'
import { eventRequest, useLog } from './log_fixture.ts'

const log = useLog()
const changes = useChanges(log)
/** Far longer than a test waits. */
const LEASE_S = 600

/** A database that, after `fail`, gives no connection for so many statements and transactions. */
function failing(database: Database) {
  let failures = 0
  const unlessAway = <T>(work: () => Promise<T>): Promise<T> => {
    if (failures === 0) return work()
    failures -= 1
    return Promise.reject(new DatabaseAway(false, new Error('no connection became free')))
  }
  const wrapped: Database = {
    ...database,
    query: (...statement) => unlessAway(() => database.query(...statement)),
    transaction: (work) => unlessAway(() => database.transaction(work)),
  }
  return {
    database: wrapped,
    fail: (times: number) => {
      failures = times
    },
  }
}

// In a database that all files share, it would learn from the sessions of others, and they from its own.
const withOwnDatabase = it.skipIf(reasonForNoOwnDatabase())

/** A space with a session that is due. */
async function newDueSpace() {
  const [project, space] = [await log.newProject(), randomUUID()]
  const session = await log.newSession(project)
  await log.newNode().append(eventRequest(project, session))
  const owned = [project, space]
  await execute(
    log.url,
    "INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) VALUES ($1, $2, '{}', now(), now())",
    owned,
  )
  await execute(
    log.url,
    `INSERT INTO space_sessions (project_id, learning_space_id, session_id, id, status, learnt_seq, due_at, created_at, updated_at)
     VALUES ($1, $2, $3, gen_random_uuid(), 'queued', 1, now(), now(), now())`,
    [...owned, session],
  )
  return owned
}

const startLearner = (database: Database, signal: AbortSignal, ask: AskModel) =>
  new Learner({
    database,
    signal,
    logger: pino({ level: 'silent' }),
    ask,
    nearest: async () => [],
    summarise: async () => {},
    ms_max: LEASE_S * 1_000,
    address: { url: 'http://127.0.0.1:9', name: 'scripted' },
    project_tokens_max: 1_000_000,
    poll_ms: 20,
  })

withOwnDatabase(
  'a space whose learner finds no connection, not even to leave the lane, is not kept waiting until the lane ends',
  async () => {
    const owned = await newDueSpace()
    const abort = new AbortController()
    const { database, fail } = failing(changes.open(2, abort.signal))
    const ask = vi.fn(async () => {
      // To store the answer, and to leave the lane.
      if (ask.mock.calls.length === 1) fail(3)
      return { text: '{"statements":[]}', tokens_in: 1, tokens_out: 1 }
    })
    const learner = startLearner(database, abort.signal, ask)
    try {
      await vi.waitFor(async () => {
        const sql = 'SELECT status FROM space_sessions WHERE project_id = $1 AND learning_space_id = $2'
        expect(await queryRows(log.url, sql, owned)).toEqual([{ status: 'completed' }])
      }, 20_000)
      expect(ask).toHaveBeenCalledTimes(2)
    } finally {
      abort.abort()
      await learner.ended()
    }
  },
)

withOwnDatabase('a space whose learner is stopped while the model thinks is handed back', async () => {
  const owned = await newDueSpace()
  const abort = new AbortController()
  const ask = vi.fn(
    (_address: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  )
  const learner = startLearner(changes.open(2, abort.signal), abort.signal, ask)
  await vi.waitFor(() => expect(ask).toHaveBeenCalled(), { timeout: 20_000 })
  abort.abort()
  await learner.ended()
  const sql = 'SELECT lane_until <= now() AS is_free FROM learning_spaces WHERE project_id = $1 AND id = $2'
  expect(await queryRows(log.url, sql, owned)).toEqual([{ is_free: true }])
})

it('a session whose consumer finds no connection, not even to postpone it, is not kept from others until its lease ends', async () => {
  const project = await changes.newProject()
  const session = await log.newSession(project)
  await log.newNode().append(eventRequest(project, session, { unmarked_until: MARKED }))
  const { database, fail } = failing(changes.open(2))
  let given = 0
  const consumer = witness(async () => {
    given += 1
    // To write what it has done, and to postpone the session.
    if (given === 1) fail(3)
  })
  changes.start(consumer, { database, lease_s: LEASE_S })
  expect(await changes.seenInTheEnd(project)).toEqual({ [session]: ['1'] })
  expect(given).toBe(2)
})
