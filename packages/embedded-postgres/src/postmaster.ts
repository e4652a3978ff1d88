import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { nameForServer } from './cluster.js'
import { type DataDirectory, passOver } from './data_directory.js'
import type { Engine } from './engine.js'
import { EmbeddedPostgresError, FULL_DISK, fullDisk } from './failures.js'
import { signalByPgCtl, startByPgCtl } from './pg_ctl.js'
import type { Place } from './place.js'
import { clearRemains, hasEnded, isServerOf, observe } from './postmaster_file.js'
import { APART, programEnvironment } from './run_program.js'
import { logSize, openLog, readLog, reasonIn } from './server_log.js'
import { serverOptions } from './settings.js'
import { forgetPort } from './tcp.js'

const POLL_MS = 10
const HELD_POLL_MS = 100
/** A start without a sign of life for this long has failed; recovery may take longer, and logs. */
const SILENCE_MS = 30_000
/** How long to wait for processes that a killed server left behind. */
const ORPHANS_MS = 30_000
/** A server that is killed during its start, or finds its port taken, is started again; if that repeats, it is not by chance. */
const MOST_FAILURES = 3
const FAST_STOP_MS = 60_000
const IMMEDIATE_STOP_MS = 10_000

// PostgreSQL's messages while another program has its port, and while another server, or what is left of one, holds PGDATA.
const PORT_TAKEN = /could not create any TCP\/IP sockets/
const STILL_HELD = /lock file "[^"]*" already exists|pre-existing shared memory block/

/**
 * Starts the server and returns its process id. Only under the lock, but it may find a server that it did not start:
 * one whose starter was killed, or that is still stopping.
 */
export async function bringUp(place: Place, engine: Engine, silenceMs = SILENCE_MS): Promise<number> {
  const { directory, reach, say } = place
  let launch: Launch | undefined
  let alive = { at: performance.now(), logged: await logSize(directory.log) }
  let heldSince: number | undefined
  let failed = 0
  for (;;) {
    const seen = await observe(directory, reach)
    if (seen.state === 'ready' && !launch?.isAwaited) return seen.pid
    const logged = await logSize(directory.log)
    if (logged !== alive.logged) alive = { at: performance.now(), logged }
    if (launch?.ended) {
      const output = await readLog(directory.log, launch.logOffset)
      const isTaken = PORT_TAKEN.test(output)
      if (isTaken) await forgetPort(directory)
      const again = (launch.killedBy !== undefined || isTaken) && ++failed < MOST_FAILURES
      if (!again && !STILL_HELD.test(output)) throw await failedStart(place, launch, output)
      if (!again && heldSince === undefined) {
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
      await giveUp(place, launch)
      throw await silentStart(place, launch, silenceMs)
    }
    await sleep(POLL_MS)
  }
}

interface Launch {
  readonly child: ChildProcess
  readonly logOffset: number
  /** pg_ctl still waits for its server to be up. */
  isAwaited: boolean
  ended: boolean
  /** Set if it did not end by itself. */
  killedBy?: NodeJS.Signals
  error?: Error
}

async function launchServer(place: Place, engine: Engine): Promise<Launch> {
  const { directory, account } = place
  const isTcp = directory.transport === 'tcp'
  const log = await openLog(directory, isTcp ? account : directory)
  try {
    const { size: logOffset } = await log.stat()
    if (isTcp) {
      // pg_ctl opens the log by itself; on Windows it can only while nobody else has it open.
      await log.close()
      return watch(await startByPgCtl(place, engine), logOffset, true)
    }
    const args = ['-D', nameForServer(directory.cluster), ...serverOptions(directory)]
    const child = spawn(engine.postgres, args, {
      ...account,
      cwd: directory.cluster,
      env: programEnvironment(),
      // Ctrl-C in our terminal must not stop it before we have drained.
      ...APART,
      stdio: ['ignore', log.fd, log.fd],
    })
    return watch(child, logOffset)
  } finally {
    await log.close()
  }
}

function watch(child: ChildProcess, logOffset: number, isPgCtl = false): Launch {
  const launch: Launch = { child, logOffset, isAwaited: isPgCtl, ended: false }
  child.on('exit', (code, signal) => {
    launch.isAwaited = false
    launch.ended = !isPgCtl || code !== 0
    if (signal) launch.killedBy = signal
  })
  child.on('error', (error) => {
    launch.ended = true
    launch.error = error
  })
  child.unref()
  return launch
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
async function giveUp(place: Place, launch: Launch | undefined): Promise<void> {
  if (!launch || launch.ended) return
  const { directory, reach } = place
  if (directory.transport === 'tcp') {
    const seen = await observe(directory, reach)
    if (seen.state !== 'busy' || seen.pid === undefined) return
    await signalByPgCtl(place, seen.pid, 'SIGQUIT')
    await endsWithin(directory, seen.pid, IMMEDIATE_STOP_MS)
    return
  }
  launch.child.kill('SIGQUIT')
  for (let waited = 0; !launch.ended && waited < IMMEDIATE_STOP_MS; waited += POLL_MS) await sleep(POLL_MS)
}

/**
 * Stops the server and returns when its last process is gone. First fast: transactions are aborted, everything is
 * written. If that takes too long, immediately: the next start recovers. Only under the lock.
 */
export async function takeDown(place: Place): Promise<void> {
  const { directory, reach } = place
  for (const [signal, patience] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
  ] as const) {
    const seen = await observe(directory, reach)
    if (seen.state === 'absent' || seen.state === 'dead' || seen.pid === undefined) return
    // A server in another container also answers on the socket, but its process id means nothing here, where it may
    // be any other process's.
    if (!(await isServerOf(directory, seen.pid))) return
    if (directory.transport === 'tcp') await signalByPgCtl(place, seen.pid, signal)
    else signalDirectly(seen.pid, signal)
    if (await endsWithin(directory, seen.pid, patience)) return
  }
}

function signalDirectly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    passOver('ESRCH')(error)
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
