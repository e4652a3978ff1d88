import { readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, type DataDirectory, isBlocked, passOver } from './data_directory.js'
import { someoneListensOn } from './presence.js'
import { runProgram } from './run_program.js'
import { ownerOption, SOCKET_NAME } from './settings.js'

/**
 * What PGDATA tells about its server:
 *
 *   absent  no postmaster.pid: it never ran, or stopped cleanly
 *   busy    a server is alive and does not answer: it is starting, recovering or stopping
 *   ready   a server is alive and answers
 *   dead    postmaster.pid belongs to a server that is gone; `misleading` if PostgreSQL would take it for a running
 *           one, because its process id is in use by something else or the file is not readable
 *
 * The file has one fact per line: process id, directory, start, port, socket directory, TCP address, shared memory,
 * status (src/include/utils/pidfile.h of PostgreSQL).
 */
export type Sighting =
  | { state: 'absent' }
  | { state: 'busy'; pid: number | undefined }
  | { state: 'ready'; pid: number }
  | { state: 'dead'; misleading: boolean }

const FILE = 'postmaster.pid'
const STATUS_LINE = 7
// A postmaster writes its file at once; if one stays empty for longer, a crash of the machine cut it off.
const HALF_WRITTEN_MS = 2000

/** Looks for the server of a data directory. `reach` is a path to it that is short enough for sockets. */
export async function observe(directory: DataDirectory, reach: string): Promise<Sighting> {
  const file = join(directory.cluster, FILE)
  // On Windows, a file that is being removed can be neither read nor missed.
  const text = await readFile(file, 'utf8').catch((error) =>
    isBlocked(error) ? '' : passOver('ENOENT')(error),
  )
  if (text === undefined) return { state: 'absent' }
  const lines = text.split('\n')
  const pid = Number.parseInt(lines[0] ?? '', 10)
  if (!Number.isInteger(pid) || pid <= 0) {
    const written = (await stat(file).catch(() => undefined))?.mtimeMs ?? Date.now()
    if (Math.abs(Date.now() - written) < HALF_WRITTEN_MS) return { state: 'busy', pid: undefined }
    return { state: 'dead', misleading: true }
  }
  if (await answers(directory, reach, pid)) {
    return lines[STATUS_LINE]?.startsWith('ready') ? { state: 'ready', pid } : { state: 'busy', pid }
  }
  if (!isAlive(pid)) return { state: 'dead', misleading: false }
  if (await isServerOf(directory, pid)) return { state: 'busy', pid }
  return { state: 'dead', misleading: true }
}

async function answers(directory: DataDirectory, reach: string, pid: number): Promise<boolean> {
  // A dead server's socket refuses connections, so one that answers proves more than any process id. Its port may
  // have gone to another program.
  if (directory.transport === 'sockets') return someoneListensOn(join(reach, 'postgres', SOCKET_NAME))
  return isAlive(pid) && isServerOf(directory, pid)
}

/**
 * Removes what would keep PostgreSQL from starting after its server died. It clears away the rest itself, and if
 * backends of the dead server are still alive, it finds their shared memory by PGDATA and refuses to start.
 */
export async function clearRemains(directory: DataDirectory, sighting: Sighting): Promise<void> {
  if (sighting.state === 'dead' && sighting.misleading)
    await rm(join(directory.cluster, FILE), { force: true })
  // It has the same process id; nobody listens on the socket that it guards.
  await rm(join(directory.cluster, `${SOCKET_NAME}.lock`), { force: true })
}

/** Whether a process exists, even if it belongs to another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/**
 * Whether a process is a running server of this data directory, by its working directory or, if the system does not
 * tell that, its command line. A zombie has neither. Windows tells neither: but each process of PostgreSQL has a pipe there
 * for what takes the place of signals, and PostgreSQL itself takes one that has it for the server of a postmaster.pid.
 */
export async function isServerOf(directory: DataDirectory, pid: number): Promise<boolean> {
  if (process.platform === 'win32') return someoneListensOn(`\\\\.\\pipe\\pgsignal_${pid}`)
  const option = `${ownerOption(directory.name)}=${directory.path}`
  if (process.platform !== 'linux') {
    const { output } = await runProgram('/bin/ps', ['-ww', '-o', 'command=', '-p', `${pid}`])
    return output.includes(option)
  }
  const [home, cluster] = await Promise.all(
    [`/proc/${pid}/cwd`, directory.cluster].map((path) => stat(path).catch(() => undefined)),
  )
  if (home && cluster) return home.ino === cluster.ino && home.dev === cluster.dev
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return command.split('\0').includes(option)
}

/**
 * Whether a server's process is gone. A zombie is: it waits for a parent that may be blocked. A process that is just
 * exiting is not: it has lost its directory and command line, but still exists.
 */
export async function hasEnded(directory: DataDirectory, pid: number): Promise<boolean> {
  if (!isAlive(pid)) return true
  if (process.platform === 'win32' || (await isServerOf(directory, pid))) return false
  if (process.platform !== 'linux') return true
  const [status, command] = await Promise.all(
    [`/proc/${pid}/stat`, `/proc/${pid}/cmdline`].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  const isZombie = status?.split(') ').at(-1)?.startsWith('Z')
  return isZombie === true || command !== ''
}
