import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Erasure } from '../../packages/kits/src/lifecycle/erase/erasure.ts'
import { registryOf } from '../../packages/kits/src/lifecycle/registry.ts'
import {
  type Database,
  type DatabasePool,
  openDatabase,
  type Queryable,
} from '../../packages/kits/src/postgres/database.ts'
import {
  addFeedback,
  addStatement,
  changeStatement,
} from '../../packages/server/src/learning/statements/statements.ts'
import { MODULES } from '../../packages/server/src/service/modules.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { useLog } from './log_fixture.ts'

/* What is erased while somebody writes what rests on it: nothing of it is left when both are done. */

const log = useLog()
const erasure = new Erasure(registryOf(MODULES).tables)
/** An erasure that waits for nobody is done by then. */
const DONE_MS = 500
let database: DatabasePool

beforeAll(() => {
  const limits = { connections_max: 4, wait_ms_max: 5_000, statement_ms_max: 20_000 }
  database = openDatabase({ target: { connectionString: log.url }, ...limits })
})
afterAll(() => database.close())

/** A database in whose transactions, and in whose statements, `meanwhile` is begun before the statement of that name. */
function meanwhileAt(name: string, meanwhile: () => Promise<unknown>) {
  let begun: Promise<unknown> | undefined
  const pausing = (queryable: Queryable): Queryable => ({
    query: async (statement, parameters) => {
      if (statement.name === name && !begun) {
        begun = meanwhile()
        await Promise.race([begun, sleep(DONE_MS)])
      }
      return queryable.query(statement, parameters)
    },
  })
  const slow: Database = {
    ...pausing(database),
    transaction: (work) => database.transaction((connection) => work(pausing(connection))),
  }
  return { slow, ended: () => begun }
}

async function newSpace(project_id: string): Promise<string> {
  const id = randomUUID()
  const insert =
    "INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) VALUES ($1, $2, '{}', now(), now())"
  await execute(log.url, insert, [project_id, id])
  return id
}

/** A statement of a person, and beside it an active one of a model, which cites a session. */
async function twoStatements(project_id: string, space: string, words: string) {
  const tenant = { database, project_id }
  const own: { id: string } = JSON.parse(await addStatement(tenant, space, { text: 'Ask first.' }))
  const other: { id: string } = JSON.parse(await addStatement(tenant, space, { text: words }))
  const session = await log.newSession(project_id)
  const ofModel =
    "UPDATE statements SET author = 'model', pinned = false, supports = 1 WHERE project_id = $1 AND id = $2"
  await execute(log.url, ofModel, [project_id, other.id])
  const cite = `INSERT INTO statement_cites (project_id, learning_space_id, statement_id, session_id, seq, polarity, quote, is_origin)
    VALUES ($1, $2, $3, $4, 1, '+', $5, true)`
  await execute(log.url, cite, [project_id, space, other.id, session, words])
  return { own: own.id, session }
}

const versionsWith = (project_id: string, words: string) =>
  queryRows(log.url, 'SELECT id FROM skill_versions WHERE project_id = $1 AND text LIKE $2', [
    project_id,
    `%${words}%`,
  ])

it('a session goes while a version of a skill is made that has what was learnt from it', async () => {
  const project_id = await log.newProject()
  const space = await newSpace(project_id)
  const words = 'The zebra is missing.'
  const { own, session } = await twoStatements(project_id, space, words)
  expect(await versionsWith(project_id, words)).toHaveLength(1)
  const { slow, ended } = meanwhileAt('add_skill_version', () =>
    erasure.erase({ database, project_id }, 'session', [session]),
  )
  await changeStatement({ database: slow, project_id }, own, { text: 'Ask at first.' })
  expect(await ended()).toMatchObject({ revoked_statements: 1 })
  expect(await versionsWith(project_id, words)).toEqual([])
})

it('a space goes while a statement of it is changed', async () => {
  const project_id = await log.newProject()
  const space = await newSpace(project_id)
  const { own } = await twoStatements(project_id, space, 'The lion is missing.')
  const { slow, ended } = meanwhileAt('add_skill_version', () =>
    erasure.erase({ database, project_id }, 'learning_space', [space]),
  )
  await changeStatement({ database: slow, project_id }, own, { text: 'Ask.' }).catch(() => {})
  expect(await ended()).toMatchObject({ learning_spaces: 1 })
  const left = 'SELECT id FROM skill_versions WHERE project_id = $1'
  expect(await queryRows(log.url, left, [project_id])).toEqual([])
})

it('a space goes while a session says that a statement of it helped', async () => {
  const project_id = await log.newProject()
  const space = await newSpace(project_id)
  const { own, session: session_id } = await twoStatements(project_id, space, 'The lynx is missing.')
  // The erasure has deleted what was said so far, and still has the statements to delete.
  const { slow, ended } = meanwhileAt('erase_statements_of_owners', () =>
    addFeedback({ database, project_id }, space, { statement_ids: [own], session_id, helped: true }),
  )
  await erasure.erase({ database: slow, project_id }, 'learning_space', [space])
  await ended()?.catch(() => {})
  const left = 'SELECT statement_id FROM statement_feedback WHERE project_id = $1'
  expect(await queryRows(log.url, left, [project_id])).toEqual([])
})
