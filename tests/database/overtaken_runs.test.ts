import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { SWITCH } from '../../packages/kits/src/changes/project_consumer_queries.ts'
import { keepConsumer, retire } from '../../packages/kits/src/changes/project_consumers.ts'
import { Erasure } from '../../packages/kits/src/lifecycle/erase/erasure.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import { type Database, type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { eraseRemains } from '../../packages/server/src/sessions/erase/erase_sessions.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { MARKED, WITNESS, witness } from './changes_fixture.ts'
import { eventRequest, useLog } from './log_fixture.ts'

/* Work that two nodes do at once: one of them falls behind, and goes on when the other is done. */

const log = useLog()
let database: DatabasePool

beforeAll(() => {
  const limits = { connections_max: 2, wait_ms_max: 5_000, statement_ms_max: 20_000 }
  database = openDatabase({ target: { connectionString: log.url }, ...limits })
})
afterAll(() => database.close())

/** The database of a node at which `others` happens before a certain one of its statements and transactions. */
function fallingBehind(at: number, others: () => Promise<void>): Database {
  let step = 0
  const pause = async () => {
    step += 1
    if (step === at) await others()
  }
  return {
    ...database,
    query: (...given) => pause().then(() => database.query(...given)),
    transaction: (work) => pause().then(() => database.transaction(work)),
  }
}

it('deleting a session leaves alone what is under its id by then, and the sessions below that', async () => {
  const project_id = await log.newProject()
  const tenant = { database, project_id }
  const parent = await log.newSession(project_id)
  const owned = [project_id, parent]
  const below = () =>
    queryRows(log.url, 'SELECT id FROM sessions WHERE project_id = $1 AND parent_id = $2', owned)
  const newChildren = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const move = 'UPDATE sessions SET parent_id = $2 WHERE project_id = $1 AND id = $3'
      await execute(log.url, move, [...owned, await log.newSession(project_id)])
    }
  }
  const erasure = new Erasure(registryOf(MODULES).tables)
  const dependents = erasure.dependentsOf('session')
  // More than are deleted at once.
  await newChildren(150)
  const stop = () => {
    throw new Error('stopped')
  }
  await expect(erasure.erase(tenant, 'session', [parent], { onSlice: stop })).rejects.toThrow('stopped')
  const behind = fallingBehind(2, async () => {
    await eraseRemains(tenant, parent, dependents)
    expect(await below()).toEqual([])
    await log.newSession(project_id, parent)
    await newChildren(2)
  })
  await eraseRemains({ database: behind, project_id }, parent, dependents)
  expect(await below()).toHaveLength(2)
})

it('taking a consumer apart leaves alone what it has once it was switched on again', async () => {
  const project_id = await log.newProject()
  const tenant = { database, project_id }
  const { signal } = new AbortController()
  await keepConsumer(tenant, WITNESS)
  await execute(log.url, SWITCH.off.text, [project_id, WITNESS])
  const behind = fallingBehind(2, async () => {
    await retire(tenant, witness(), signal)
    await keepConsumer(tenant, WITNESS)
    const read = 'INSERT INTO change_cursors (project_id, consumer, session_id, seq) VALUES ($1, $2, $3, 1)'
    await execute(log.url, read, [project_id, WITNESS, randomUUID()])
  })
  await retire({ database: behind, project_id }, witness(), signal)
  const state = `SELECT p.consumers, (SELECT count(*)::int FROM change_cursors u WHERE u.project_id = $1) AS cursors,
      (SELECT count(*)::int FROM project_consumers c WHERE c.project_id = $1) AS kept
    FROM projects p WHERE p.id = $1`
  expect(await queryRows(log.url, state, [project_id])).toEqual([
    { consumers: [WITNESS], cursors: 1, kept: 1 },
  ])
})

it('a consumer that was taken apart has no marks left of what was appended meanwhile', async () => {
  const project_id = await log.newProject()
  const session = await log.newSession(project_id)
  const appender = log.newNode()
  await keepConsumer({ database, project_id }, WITNESS)
  await execute(log.url, SWITCH.off.text, [project_id, WITNESS])
  const behind = fallingBehind(4, async () => {
    await appender.append(eventRequest(project_id, session, { unmarked_until: MARKED }))
  })
  await retire({ database: behind, project_id }, witness(), new AbortController().signal)
  const marks = 'SELECT session_id FROM change_marks WHERE project_id = $1'
  expect(await queryRows(log.url, marks, [project_id])).toEqual([])
})
