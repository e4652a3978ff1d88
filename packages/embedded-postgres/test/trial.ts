import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readlink, realpath, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { expect, inject } from 'vitest'
import { type Transport, transportOf } from '../src/data_directory.ts'
import { type ServerConnection, startOver } from '../src/embedded_postgres.ts'
import { packageFor } from '../src/engine.ts'

/** Whether this run is root's: some promises only show as root, some only as an ordinary user. */
export const IS_ROOT = process.getuid?.() === 0
/** The gate runs what installs PostgreSQL anew, which is most of the time that these tests take. */
export const IS_THOROUGH = process.env.TEST_THOROUGH === '1'
/** An account without rights, for what root does to others and others to root. */
export const NOBODY = { uid: 65534, gid: 65534 }
/** Whose servers these are. */
export const NAME = 'trial'
/** The npm package with PostgreSQL for this platform. */
export const PACKAGE = packageFor(process.platform, process.arch)

const DIST = resolve(import.meta.dirname, '../dist')
const NODE_MODULES = resolve(dirname(createRequire(import.meta.url).resolve('pg')), '../..')

/**
 * Directories and processes of one test. `end` stops what still runs below the directories, removes them, and
 * fails the test if the code under test left a process behind that it should have ended.
 */
export class Trial {
  readonly #homes: string[] = []
  readonly #holders: Holder[] = []

  async directory(): Promise<string> {
    const home = await realpath(await mkdtemp(join(tmpdir(), 'annals-test-')))
    this.#homes.push(home)
    return home
  }

  /** Makes `dataDir` as a first start and its stop leave it: a copy of one that this process has made. */
  async prepare(dataDir: string, transport = transportOf(process.platform)): Promise<void> {
    prepared[transport] ??= prepareCluster(transport)
    const { status, stderr } = spawnSync('cp', ['-a', await prepared[transport], dataDir], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`The prepared cluster could not be copied: ${stderr}`)
  }

  /** Another process that starts the server of `dataDir` and holds it until it is told to release it. */
  hold(dataDir: string, options: HolderOptions = {}): Holder {
    const holder = new Holder(dataDir, options)
    this.#holders.push(holder)
    return holder
  }

  async end(): Promise<void> {
    for (const holder of this.#holders) holder.kill('SIGKILL')
    const left: string[] = []
    for (const home of this.#homes) {
      for (const pid of await processesIn(home)) {
        left.push(`${pid} in ${home}`)
        process.kill(pid, 'SIGKILL')
      }
      for (let wait = 0; wait < 100 && (await processesIn(home)).length > 0; wait++) await sleep(20)
      await rm(home, { recursive: true, force: true, maxRetries: 5 })
    }
    expect(left, 'processes left behind').toEqual([])
  }
}

const prepared: Partial<Record<Transport, Promise<string>>> = {}

/** initdb takes a second of a processor, and its result is always the same. */
async function prepareCluster(transport: Transport): Promise<string> {
  await chmod(inject('preparedClusters'), 0o711)
  const home = await mkdtemp(join(inject('preparedClusters'), 'cluster-'))
  await chmod(home, 0o711)
  const dataDir = join(home, 'annals')
  const server = await startOver(transport, { name: NAME, dataDir })
  await server.release()
  return dataDir
}

interface HolderOptions {
  transport?: Transport
  account?: { uid: number; gid: number }
  dist?: string
  env?: Record<string, string>
}

/** See `Trial.hold`. */
export class Holder {
  readonly child: ChildProcess
  readonly sentences: string[] = []
  /** The line with which it is up, or the message of the error with which it failed. */
  readonly outcome: Promise<string>
  readonly exit: Promise<number | null>

  constructor(dataDir: string, options: HolderOptions) {
    const { account, dist = DIST, env = {}, transport = transportOf(process.platform) } = options
    const module = pathToFileURL(join(dist, 'embedded_postgres.js')).href
    const script = `
      import { startOver } from ${JSON.stringify(module)}
      process.on('SIGINT', () => {})
      try {
        const onProgress = (sentence) => console.log('progress ' + sentence)
        const server = await startOver(${JSON.stringify(transport)}, { name: ${JSON.stringify(NAME)}, dataDir: ${JSON.stringify(dataDir)}, onProgress })
        console.log('up ' + JSON.stringify(server.connection))
        process.stdin.once('data', async () => {
          await server.release()
          process.exit(0)
        })
      } catch (error) {
        console.log(error.name + ' ' + error.message)
        process.exit(1)
      }`
    // A process group of its own, as one started in a terminal has.
    this.child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      ...account,
      cwd: '/',
      env: { PATH: process.env.PATH ?? '', TMPDIR: tmpdir(), ...env },
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.child.stdin?.on('error', () => {})
    this.exit = new Promise((end) => this.child.on('close', end))
    this.outcome = new Promise((tell) => {
      createInterface({ input: this.child.stdout! }).on('line', (line) => {
        if (line.startsWith('progress ')) this.sentences.push(line.slice('progress '.length))
        else tell(line)
      })
      void this.exit.then((code) => tell(`ended with ${code}`))
    })
  }

  /** Waits until it is up. */
  async connection(): Promise<ServerConnection> {
    const line = await this.outcome
    expect(line).toMatch(/^up /)
    return JSON.parse(line.slice('up '.length)) as ServerConnection
  }

  async release(): Promise<void> {
    this.child.stdin?.write('release\n')
    expect(await this.exit).toBe(0)
  }

  kill(signal: NodeJS.Signals): void {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal)
  }

  async killed(): Promise<void> {
    this.kill('SIGKILL')
    await this.exit
  }
}

/** Runs one statement on a connection of its own. */
export async function query(
  connection: ServerConnection,
  statement: string,
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ ...connection })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows
  } finally {
    await client.end()
  }
}

/** The ids of all processes whose working directory is below `home`, which all of PostgreSQL's have there. */
export async function processesIn(home: string): Promise<number[]> {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('/bin/ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8' })
    return stdout.split('\n').flatMap((line) => (line.includes(home) ? [Number.parseInt(line, 10)] : []))
  }
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const homes = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')))
  return pids.filter((_, index) => homes[index]?.startsWith(home))
}

/** Waits, for at most ten seconds, until `found` returns something. */
export async function eventually<T>(found: () => Promise<T | undefined | false>): Promise<T> {
  for (let waited = 0; waited < 10_000; waited += 5) {
    const value = await found()
    if (value) return value
    await sleep(5)
  }
  throw new Error('What was waited for has not happened.')
}

/**
 * The compiled code in a place of its own, with a node_modules in which `prepare` may put PostgreSQL's package
 * in the state that a test is about; without it the package is missing.
 */
export async function installElsewhere(
  home: string,
  prepare?: (packageRoot: string) => Promise<void>,
): Promise<string> {
  await cp(DIST, join(home, 'dist'), { recursive: true })
  const modules = join(home, 'node_modules')
  await mkdir(dirname(join(modules, PACKAGE)), { recursive: true })
  await symlink(join(NODE_MODULES, 'pg'), join(modules, 'pg'))
  await cp(resolve(DIST, '../package.json'), join(home, 'package.json'))
  if (prepare) {
    const root = join(modules, PACKAGE)
    // As npm unpacks it: without links, which its archives cannot contain.
    const filter = async (path: string) => !path.endsWith('.a') && !(await lstat(path)).isSymbolicLink()
    await cp(join(NODE_MODULES, PACKAGE), root, { recursive: true, filter })
    await prepare(root)
  }
  return join(home, 'dist')
}
