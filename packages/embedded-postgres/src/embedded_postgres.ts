import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { Client } from './client.js'
import { clusterExists, createCluster, prepareCluster } from './cluster.js'
import { type DataDirectory, openDataDirectory, type Transport, transportOf } from './data_directory.js'
import { findEngine } from './engine.js'
import { asPlainError, EmbeddedPostgresError } from './failures.js'
import type { Place } from './place.js'
import { bringUp, takeDown } from './postmaster.js'
import { isAlive, observe } from './postmaster_file.js'
import { chooseAccount, programEnvironment } from './run_program.js'
import { boundLog } from './server_log.js'
import { SOCKET_PORT } from './settings.js'
import { shortPathTo } from './short_path.js'
import { LOOPBACK, passwordIn, portIn } from './tcp.js'

/**
 * PostgreSQL as a part of a program: one private server per data directory, shared by the processes that use it.
 *
 *   nothing ──createCluster──▶ stopped ──bringUp──▶ running ──takeDown──▶ stopped
 *                                 ▲                    │
 *                                 └── dead ◀──killed───┘    (the next bringUp recovers)
 *
 * Each arrow to the right is taken by one process at a time, the holder of the lock (`src/client.ts`).
 * Each process first becomes a client and then takes the lock, so the last client, which stops the server, sees every
 * other one that relies on it. All state of the server is what PostgreSQL itself keeps in PGDATA
 * (`src/postmaster_file.ts`): a server whose starter was killed is found and used again. A process that
 * ends without having left, such as by an uncaught error, starts another one that leaves for it.
 */
export interface EmbeddedPostgresOptions {
  /** Where all that the server keeps is; created if it is missing. */
  dataDir: string
  /**
   * Whose server it is, such as the program's name: letters, digits and _. The database and its user are called so, and
   * what stands outside of the data directory. Always the same for one data directory.
   */
  name: string
  /** Told in a sentence what takes long, and what went wrong and is being mended. */
  onProgress?: (sentence: string) => void
}

/**
 * What `pg` needs: the directory of the Unix socket as host, and the number in the socket's name; or, on Windows, an
 * address and a port of this machine, and the password.
 */
export interface ServerConnection {
  host: string
  port: number
  database: string
  user: string
  password?: string
  ssl?: false
}

export interface EmbeddedPostgres {
  readonly connection: ServerConnection
  /** Leaves the server; the last process stops it. Idempotent. */
  release(): Promise<void>
}

/**
 * Starts the PostgreSQL of a data directory, or joins the one that runs.
 * @throws EmbeddedPostgresError
 */
export function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  return startOver(transportOf(process.platform), options)
}

/** The same, whatever the platform's way is. */
export async function startOver(
  transport: Transport,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { dataDir, name, onProgress = () => {} } = options
  if (!/^\w{1,32}$/.test(name))
    throw new TypeError(`${name} is not a valid name: use up to 32 letters, digits and _.`)
  try {
    return await joinServer(await openPlace(dataDir, name, transport, onProgress))
  } catch (error) {
    throw await asPlainError(error, resolve(dataDir))
  }
}

/** Stops the server of a data directory if nobody uses it. */
export async function stopUnused(dataDir: string, name: string, transport: Transport): Promise<void> {
  // Creates nothing if the data was deleted meanwhile.
  if (!existsSync(dataDir)) return
  const place = await openPlace(dataDir, name, transport, () => {})
  const client = await Client.join(place.directory, place.reach)
  await client.leave(() => takeDown(place), place.say)
}

async function openPlace(
  dataDir: string,
  name: string,
  transport: Transport,
  say: Place['say'],
): Promise<Place> {
  const directory = await openDataDirectory(dataDir, name, transport)
  const cluster = await lstat(directory.cluster).catch(() => undefined)
  const account = await chooseAccount([cluster, directory])
  const reach = await shortPathTo(directory)
  return { directory, reach, account, say }
}

async function joinServer(place: Place): Promise<EmbeddedPostgres> {
  const { directory, reach, say } = place
  const client = await Client.join(directory, reach)
  const onExit = () => {
    client.abandon()
    leaveToAnother(directory)
  }
  process.once('exit', onExit)
  const leave = () => client.leave(() => takeDown(place), say).finally(() => process.off('exit', onExit))
  try {
    const { pid, connection } = await client.whileLocked(() => serve(place), say)
    const revive = async () => {
      const revived = await client.whileLocked(() => serve(place, { create: false }), say)
      if (revived.connection.port !== connection.port)
        throw new EmbeddedPostgresError('Another program took the port of PostgreSQL: start this one again.')
      return revived.pid
    }
    const keeper = keepAlive(place, pid, revive)
    let released: Promise<void> | undefined
    const release = () => {
      released ??= keeper.stop().then(leave)
      return released
    }
    return { connection, release }
  } catch (error) {
    await leave().catch(() => {})
    throw error
  }
}

/** Starts another process that stops the server for this one, which is ending without having left and cannot wait. */
function leaveToAnother({ path, name, transport }: DataDirectory): void {
  const program = fileURLToPath(new URL('./stop_unused.js', import.meta.url))
  const options = { cwd: '/', env: programEnvironment(), detached: true, stdio: 'ignore' } as const
  spawn(process.execPath, [program, path, name, transport], options)
    .on('error', () => {})
    .unref()
}

async function connectionTo({ directory, reach }: Place): Promise<ServerConnection> {
  const { name, transport, cluster } = directory
  const whose = { database: name, user: name }
  if (transport === 'sockets') return { host: `${reach}/postgres`, port: SOCKET_PORT, ...whose }
  const [port, password] = await Promise.all([portIn(directory), passwordIn(cluster)])
  return { host: LOOPBACK, port, ...whose, password, ssl: false }
}

/** Ensures that the server runs and has the database. Only under the lock. */
async function serve(
  place: Place,
  { create } = { create: true },
): Promise<{ pid: number; connection: ServerConnection }> {
  const { directory, reach, account, say } = place
  const began = performance.now()
  for (;;) {
    const seen = await observe(directory, reach)
    let pid = seen.state === 'ready' ? seen.pid : undefined
    if (pid === undefined) {
      const engine = await findEngine(directory, account, say)
      if (!(await clusterExists(directory, engine.major))) {
        if (!create)
          throw new EmbeddedPostgresError(
            `The PostgreSQL data in ${directory.cluster} is gone: restore a backup.`,
          )
        say(`Creating the database in ${directory.path}`)
        await createCluster(directory, engine, account)
      }
      if (seen.state !== 'busy') await prepareCluster(directory.cluster, account)
      pid = await bringUp(place, engine)
    }
    const connection = await connectionTo(place)
    if (await ensureDatabase(connection)) return { pid, connection }
    if (performance.now() - began > CONNECT_MS) {
      throw new EmbeddedPostgresError(
        `PostgreSQL is running but accepts no connections: see ${directory.log}, and start again.`,
      )
    }
    // It went away between the check and the connection.
    await sleep(100)
  }
}

// Including the start before it; only a stuck server, or one that somebody else is stopping, needs more.
const CONNECT_MS = 30_000

// SQLSTATEs of PostgreSQL (appendix A of its manual).
const TOO_MANY_CONNECTIONS = '53300'
const GOING_DOWN = ['57P01', '57P02', '57P03']

/**
 * Connects once and creates the database if it is missing. False: the server does not accept connections now, because
 * it is stopping or has just stopped. Only under the lock.
 */
async function ensureDatabase(connection: ServerConnection): Promise<boolean> {
  const { database } = connection
  const client = new pg.Client({
    ...connection,
    database: 'postgres',
    application_name: `${database} start`,
    connectionTimeoutMillis: 10_000,
  })
  // Without a listener, an error between two statements would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    const found = await client.query('SELECT FROM pg_database WHERE datname = $1', [database])
    if (found.rowCount === 0) await client.query(`CREATE DATABASE "${database}"`)
    return true
  } catch (error) {
    // An error that the server did not send comes from a refused or broken connection.
    if (!(error instanceof pg.DatabaseError) || GOING_DOWN.includes(error.code ?? '')) return false
    // Then it is up and has the database: others are using it.
    if (error.code === TOO_MANY_CONNECTIONS) return true
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}

const LOOK_MS = 1000
const RETRY_MS = 5000
const UPKEEP_MS = 3_600_000

/**
 * Restarts the server if it dies under its clients, for example when the system runs out of memory and kills it:
 *
 *   watching ──server gone──▶ reviving ──▶ watching, or, if that failed, waiting ──▶ reviving
 *      └──────────stop───────────┴──────────────────────────┴──▶ stopped
 *
 * All clients do this at once; the lock lets the first one start it, and the others find it running.
 */
function keepAlive(place: Place, firstPid: number, revive: () => Promise<number>): { stop(): Promise<void> } {
  let pid = firstPid
  let stopped = false
  let timer: NodeJS.Timeout
  let reviving: Promise<void> = Promise.resolve()
  let upkeepAt = performance.now() + UPKEEP_MS

  const look = async () => {
    let wait = LOOK_MS
    try {
      if (!isAlive(pid)) {
        place.say('PostgreSQL has ended unexpectedly; restarting it')
        pid = await revive()
      }
      if (performance.now() > upkeepAt) {
        upkeepAt += UPKEEP_MS
        await boundLog(place.directory.log)
        // A cleaner of /tmp may have removed the link to the socket.
        await shortPathTo(place.directory)
      }
    } catch (error) {
      place.say(error instanceof Error ? error.message : String(error))
      wait = RETRY_MS
    }
    if (!stopped) schedule(wait)
  }
  const schedule = (wait: number) => {
    timer = setTimeout(() => {
      reviving = look()
    }, wait)
    timer.unref()
  }
  schedule(LOOK_MS)
  return {
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await reviving
    },
  }
}
