import { generateKeyPairSync } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { type Database, type DatabasePool, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { DatabaseAway } from '../../packages/kits/src/postgres/database_errors.ts'
import type { Anchor } from '../../packages/server/src/proof/anchor.ts'
import { anchorHeads } from '../../packages/server/src/proof/anchoring.ts'
import { queryRows } from '../harness/sql.ts'
import { ending, eventRequest, useLog } from './log_fixture.ts'

const log = useLog()
const { privateKey: key } = generateKeyPairSync('ed25519')
let pool: DatabasePool | undefined
afterAll(() => pool?.close())

/** The database, but for what names a project whose machine is away. */
function without(database: Database, away: Set<unknown>): Database {
  const check = (parameters: readonly unknown[]) => {
    if (parameters.some((parameter) => away.has(parameter)))
      throw new DatabaseAway(false, new Error('connection to the remote node failed'))
  }
  const query: Database['query'] = async (statement, parameters, ...more) => {
    check(parameters)
    return database.query(statement, parameters, ...more)
  }
  const transaction: Database['transaction'] = (work, ...more) =>
    database.transaction(
      (connection) =>
        work({
          query: async (statement, parameters) => {
            check(parameters)
            return connection.query(statement, parameters)
          },
        }),
      ...more,
    )
  return Object.assign(Object.create(database) as Database, { query, transaction })
}

it('a machine that is away leaves the heads of its own projects, and what it missed is anchored later', async () => {
  const node = log.newNode()
  const [here, there] = [await log.newProject(), await log.newProject()]
  const sessions = new Map<string, string>()
  const append = async (project: string) => {
    const session = sessions.get(project) ?? (await log.newSession(project))
    sessions.set(project, session)
    await ending(node, eventRequest(project, session, { proof: true }))
  }
  await queryRows(log.url, 'UPDATE projects SET proof = true WHERE id = ANY ($1)', [[here, there]])
  pool = openDatabase({
    target: { connectionString: log.url },
    ...{ connections_max: 2, wait_ms_max: 5_000, statement_ms_max: 20_000 },
  })
  const sent: Anchor[] = []
  const away = new Set<unknown>()
  const database = without(pool, away)
  const pass = async (onSent: () => void = () => {}) => {
    const before = sent.length
    const send = async (_line: string, anchor: Anchor) => {
      sent.push(anchor)
      onSent()
    }
    const destination = { name: 'test', send }
    const done = await anchorHeads({ database, destination, key, signal: new AbortController().signal })
    const projects = new Set(sent.slice(before).map(({ project }) => project))
    return { left: done!.left?.message, projects: [here, there].filter((project) => projects.has(project)) }
  }
  const reason = async () =>
    (await queryRows<{ failure: string }>(log.url, 'SELECT failure FROM proof_destinations', []))[0]!.failure

  for (const project of [here, there]) await append(project)
  away.add(there)
  expect(await pass()).toMatchObject({ left: expect.any(String), projects: [here] })
  expect(await reason()).toBe('connection to the remote node failed')
  await append(here)
  expect((await pass()).projects).toEqual([here])
  // It comes back, and goes away again between what was sent and the note that it arrived.
  away.clear()
  const interrupted = await pass(() => sent.at(-1)!.project === there && away.add(there))
  expect(interrupted).toMatchObject({ left: expect.any(String), projects: [there] })
  away.clear()
  expect(await pass()).toEqual({ left: undefined, projects: [there] })
  expect(await pass()).toEqual({ left: undefined, projects: [] })
  expect(await reason()).toBeNull()
  expect(sent.map(({ nth }) => nth)).toEqual(sent.map((_anchor, index) => index + 1))
})
