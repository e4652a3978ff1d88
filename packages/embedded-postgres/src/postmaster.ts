import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { nameForServer } from './cluster.js'
import { type DataDirectory, passOver } from './data_directory.js'
import type { Engine } from './engine.js'
import { EmbeddedPostgresError, FULL_DISK, fullDisk } from './failures.js'
import { clearRemains, hasEnded, isServerOf, observe } from './postmaster_file.js'
import { type Account, programEnvironment } from './run_program.js'
import { logSize, openLog, readLog, reasonIn } from './server_log.js'
import { serverOptions } from './settings.js'

const POLL_MS = 10
const HELD_POLL_MS = 100
/** A start without a sign of life for this long has failed; recovery may take longer, and logs. */
const SILENCE_MS = 30_000
/** How long to wait for processes that a killed server left behind. */
const ORPHANS_MS = 30_000
/** A server that is killed during its start is started again, but if that repeats, there is too little memory. */
const MOST_KILLS = 3
const FAST_STOP_MS = 60_000
const IMMEDIATE_STOP_MS = 10_000

// PostgreSQL's messages while another server, or what is left of one, holds PGDATA.
const STILL_HELD = /lock file "[^"]*" already exists|pre-existing shared memory block/

export interface Place {
  readonly directory: DataDirectory
  /** A path to the data directory that is short enough for sockets. */
  readonly reach: string
  readonly account: Account | undefined
  readonly say: (sentence: string) => void
}

/**
 * Starts the server and returns its process id. Only under the lock, but it may find a server that it did not start:
 * one whose starter was killed, or that is still stopping.
 */
export async function bringUp(place: Place, engine: Engine, silenceMs = SILENCE_MS): Promise<number> {
  const { directory, reach, say } = place
  let launch: Launch | undefined
  let alive = { at: performance.now(), logged: await logSize(directory.log) }
  let heldSince: number | undefined
  let killed = 0
  for (;;) {
    const seen = await observe(directory, reach)
    if (seen.state === 'ready') return seen.pid
    const logged = await logSize(directory.log)
    if (logged !== alive.logged) alive = { at: performance.now(), logged }
    if (launch?.ended) {
      const output = await readLog(directory.log, launch.logOffset)
      const wasKilled = launch.killedBy !== undefined && ++killed < MOST_KILLS
      if (!wasKilled && !STILL_HELD.test(output)) throw await failedStart(place, launch, output)
      if (!wasKilled && heldSince === undefined) {
        heldSince = performance.now()
        say('Waiting for processes of the previous PostgreSQL to end')
      }
      if (heldSince !== undefined && performance.now() - heldSince > ORPHANS_MS)
        throw stillHeld(directory, output)
      launch = undefined
      await sleep(HELD_POLL_MS)
      continue
    }
    if (!launch && seen.state !== 'busy') {
      await clearRemains(directory, seen)
      if (heldSince === undefined) say(`Starting PostgreSQL ${engine.version}`)
      launch = await launchServer(place, engine)
    }
    if (performance.now() - alive.at > silenceMs) {
      await giveUp(launch)
      throw await silentStart(place, launch, silenceMs)
    }
    await sleep(POLL_MS)
  }
}

interface Launch {
  readonly child: ChildProcess
  readonly logOffset: number
  ended: boolean
  /** Set if it did not end by itself. */
  killedBy?: NodeJS.Signals
  error?: Error
}

async function launchServer({ directory, account }: Place, engine: Engine): Promise<Launch> {
  const log = await openLog(directory)
  try {
    const { size: logOffset } = await log.stat()
    const args = ['-D', nameForServer(directory.cluster), ...serverOptions(directory)]
    const child = spawn(engine.postgres, args, {
      ...account,
      cwd: directory.cluster,
      env: programEnvironment(),
      // A session of its own: Ctrl-C in our terminal must not stop it before we have drained.
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    const launch: Launch = { child, logOffset, ended: false }
    child.on('exit', (_code, signal) => {
      launch.ended = true
      if (signal) launch.killedBy = signal
    })
    child.on('error', (error) => {
      launch.ended = true
      launch.error = error
    })
    child.unref()
    return launch
  } finally {
    await log.close()
  }
}

async function failedStart(
  { directory }: Place,
  launch: Launch,
  output: string,
): Promise<EmbeddedPostgresError> {
  if (FULL_DISK.test(output)) return fullDisk(directory.path, output)
  const killed = launch.killedBy && `it was killed by ${launch.killedBy}, as happens when memory runs out`
  const reason = launch.error?.message ?? killed ?? reasonIn(output)
  return new EmbeddedPostgresError(
    `PostgreSQL could not start (${reason}): see ${directory.log}, and if the data is damaged, restore a backup ` +
      'or choose another data directory.',
    { cause: output },
  )
}

function stillHeld(directory: DataDirectory, output: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `Processes of a previous PostgreSQL still use ${directory.cluster} (${reasonIn(output)}): end them and start again.`,
    { cause: output },
  )
}

async function silentStart(
  { directory }: Place,
  launch: Launch | undefined,
  silenceMs: number,
): Promise<EmbeddedPostgresError> {
  const output = await readLog(directory.log, launch?.logOffset ?? 0)
  return new EmbeddedPostgresError(
    `PostgreSQL did not start within ${silenceMs / 1000} s; its log ${directory.log} ends with ` +
      `"${reasonIn(output)}": remove the cause and start again.`,
    { cause: output },
  )
}

/** Ends a server that we launched and that failed to start; nobody has used it. */
async function giveUp(launch: Launch | undefined): Promise<void> {
  if (!launch || launch.ended) return
  launch.child.kill('SIGQUIT')
  for (let waited = 0; !launch.ended && waited < IMMEDIATE_STOP_MS; waited += POLL_MS) await sleep(POLL_MS)
}

/**
 * Stops the server and returns when its last process is gone. First fast: transactions are aborted, everything is
 * written. If that takes too long, immediately: the next start recovers. Only under the lock.
 */
export async function takeDown({ directory, reach }: Place): Promise<void> {
  for (const [signal, patience] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
  ] as const) {
    const seen = await observe(directory, reach)
    if (seen.state === 'absent' || seen.state === 'dead' || seen.pid === undefined) return
    // A server in another container also answers on the socket, but its process id means nothing here, where it may
    // be any other process's.
    if (!(await isServerOf(directory, seen.pid))) return
    try {
      process.kill(seen.pid, signal)
    } catch (error) {
      passOver('ESRCH')(error)
    }
    if (await endsWithin(directory, seen.pid, patience)) return
  }
}

async function endsWithin(directory: DataDirectory, pid: number, patience: number): Promise<boolean> {
  const began = performance.now()
  while (performance.now() - began < patience) {
    if (await hasEnded(directory, pid)) return true
    await sleep(POLL_MS)
  }
  return false
}
