import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { expectOrderlyEnds, runAnnals, startServer } from './annals_process.ts'
import { withDatabaseName } from './database_url.ts'
import { collectIn, findLeaks } from './leaks.ts'
import { startOwnServer } from './own_server.ts'
import { execute, queryRows } from './sql.ts'

/**
 * What the test files get to know about the database server.
 * `cloned`: each file clones the migrated template. `shared`: the server has Citus, whose databases cannot
 * be cloned, so every file works in the one database at `serverUrl`, each in projects of its own.
 */
export interface TestServer {
  mode: 'cloned' | 'shared'
  /** The database that CREATE DATABASE is sent to; in mode `shared` the one that every file works in. */
  serverUrl: string
  /** Every database of this run has a name that starts so. */
  prefix: string
  template: string
  embedded: boolean
}

/** Nodes with default settings on one database, for all files whose tests stay within projects of their own. */
export interface SharedNodes {
  databaseUrl: string
  urls: string[]
}

declare module 'vitest' {
  interface ProvidedContext {
    testServer: TestServer
    sharedService: SharedNodes
  }
}

const BUNDLE = fileURLToPath(new URL('../../packages/server/bundle.js', import.meta.url))

interface Prepared {
  testServer: TestServer
  nodes: SharedNodes
  end(): Promise<void>
}

/** Both tiers in one run share what is prepared: the first one prepares it, the last one to end removes it. */
const RUN = Symbol.for('annals.test.run')
const held = globalThis as { [RUN]?: { users: number; prepared: Promise<Prepared> } }

export default async function prepareDatabases(project: TestProject): Promise<() => Promise<void>> {
  held[RUN] ??= { users: 0, prepared: prepare() }
  const run = held[RUN]
  run.users += 1
  const { testServer, nodes, end } = await run.prepared
  project.provide('testServer', testServer)
  project.provide('sharedService', nodes)
  return async () => {
    run.users -= 1
    if (run.users > 0) return
    delete held[RUN]
    await end()
  }
}

async function prepare(): Promise<Prepared> {
  // What is tested is what was compiled last, though only `tsc -b` ran since the last build.
  const bundled = process.env.BUILD_IS_CURRENT
    ? Promise.resolve()
    : promisify(execFile)(process.execPath, [BUNDLE])
  // The run waits for it below, beside the server's start.
  bundled.catch(() => {})
  const given = process.env.TEST_DATABASE_URL
  const shown = await mkdtemp(join(tmpdir(), 'annals-shown-'))
  collectIn(shown)
  const server = given ? { url: given, remove: async () => {} } : await startOwnServer()
  try {
    await bundled
    const testServer = await prepareTemplate(server.url, !given)
    const shared = await startSharedNodes(testServer)
    const end = async () => {
      try {
        await shared.stop()
        await leaveNothingBehind(testServer)
        showNoSecret(shown)
      } finally {
        await server.remove()
        await rm(shown, { recursive: true, force: true })
      }
    }
    return { testServer, nodes: shared.provided, end }
  } catch (error) {
    await server.remove()
    throw error
  }
}

async function prepareTemplate(serverUrl: string, embedded: boolean): Promise<TestServer> {
  const prefix = `annals_test_${randomBytes(4).toString('hex')}`
  const template = `${prefix}_template`
  const citus = await queryRows(serverUrl, "SELECT 1 FROM pg_extension WHERE extname = 'citus'")
  const mode = citus.length > 0 ? 'shared' : 'cloned'
  if (mode === 'cloned') await execute(serverUrl, `CREATE DATABASE ${template}`)
  await migrate(mode === 'cloned' ? withDatabaseName(serverUrl, template) : serverUrl)
  return { mode, serverUrl, prefix, template, embedded }
}

async function migrate(databaseUrl: string): Promise<void> {
  const result = await runAnnals(['migrate'], { DATABASE_URL: databaseUrl })
  if (result.code !== 0) throw new Error(`annals migrate failed (${result.code}): ${result.stderr}`)
}

const SHARED_NODES = 2

async function startSharedNodes(server: TestServer) {
  const name = `${server.prefix}_shared`
  const isCloned = server.mode === 'cloned'
  if (isCloned) await execute(server.serverUrl, `CREATE DATABASE ${name} TEMPLATE ${server.template}`)
  const databaseUrl = isCloned ? withDatabaseName(server.serverUrl, name) : server.serverUrl
  const nodes = await Promise.all(
    Array.from({ length: SHARED_NODES }, () => startServer({ DATABASE_URL: databaseUrl })),
  )
  const stop = async () => {
    expectOrderlyEnds(await Promise.all(nodes.map((node) => node.stop())))
    if (isCloned) await execute(server.serverUrl, `DROP DATABASE ${name} WITH (FORCE)`)
  }
  return { provided: { databaseUrl, urls: nodes.map(({ url }) => url) }, stop }
}

/** Drops the template, and fails the run if a test file left a database or a connection behind. */
async function leaveNothingBehind(server: TestServer): Promise<void> {
  if (server.mode === 'shared') return
  const left = await queryRows<{ datname: string }>(
    server.serverUrl,
    'SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY datname',
    [server.prefix],
  )
  for (const { datname } of left) await execute(server.serverUrl, `DROP DATABASE ${datname} WITH (FORCE)`)
  const unexpected = left.map((row) => row.datname).filter((name) => name !== server.template)
  if (unexpected.length > 0) throw new Error(`Test files left databases behind: ${unexpected.join(', ')}`)
}

/** Fails the run if any log, metric or command line of any service in it showed a token, a payload or a password. */
function showNoSecret(directory: string): void {
  const leaks = findLeaks(directory)
  if (leaks.length > 0) throw new Error(`Secrets were shown:\n${leaks.slice(0, 20).join('\n')}`)
}
