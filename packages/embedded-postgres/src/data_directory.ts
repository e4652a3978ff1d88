import { chmod, lchown, mkdir, open, realpath, rename, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRoot } from './run_program.js'

/** How processes reach the server and each other: by Unix sockets, or by a port of this machine and named pipes. */
export type Transport = 'sockets' | 'tcp'

/** Node has no Unix sockets on Windows. */
export function transportOf(platform: NodeJS.Platform): Transport {
  return platform === 'win32' ? 'tcp' : 'sockets'
}

/**
 * The paths of one embedded PostgreSQL. Everything is below one directory, so that it can be moved, copied (while
 * stopped) and deleted as a whole.
 */
export interface DataDirectory {
  /** The real path, so that two spellings of one directory mean one server. */
  readonly path: string
  /** Whose server it is. */
  readonly name: string
  readonly transport: Transport
  /** PGDATA; the server's socket lies in it too. */
  readonly cluster: string
  readonly log: string
  /** One directory per live process; see `src/client.ts`. */
  readonly clients: string
  /** Held by the process that starts or stops PostgreSQL; see `src/client.ts`. */
  readonly lock: string
  /** The directory's owner: what root creates in it is handed to this user. */
  readonly uid: number
  readonly gid: number
}

/** Creates the data directory if it is missing and describes it; throws file system errors. */
export async function openDataDirectory(
  dataDir: string,
  name: string,
  transport: Transport,
): Promise<DataDirectory> {
  const wanted = resolve(dataDir)
  const created = await mkdir(wanted, { recursive: true, mode: 0o700 })
  if (created !== undefined) {
    // The account that runs PostgreSQL for root must be able to enter; everything inside is 0700.
    if (isRoot()) await chmod(wanted, 0o711)
    await syncPath(dirname(created))
  }
  const path = await realpath(wanted)
  const { uid, gid } = await stat(path)
  const paths = pathsIn(path, name, transport)
  await mkdir(paths.clients, { mode: 0o700 }).catch(passOver('EEXIST'))
  await handToOwner(paths.clients, { uid, gid })
  return { ...paths, uid, gid }
}

/** Hands what root created in another user's data directory to that user, who must be able to remove it. */
export async function handToOwner(path: string, owner: { uid: number; gid: number }): Promise<void> {
  if (!isRoot() || owner.uid === 0) return
  await lchown(path, owner.uid, owner.gid)
}

/** Makes a file's content durable, or the names in a directory. */
export async function syncPath(path: string): Promise<void> {
  // There a directory cannot be opened, and the file system logs changes of names.
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The errno name of a file system error, or undefined. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/** Whether Windows refused because another program, such as a virus scanner, has a file open at this moment. */
export function isBlocked(error: unknown): boolean {
  return process.platform === 'win32' && ['EPERM', 'EACCES', 'EBUSY'].includes(codeOf(error) ?? '')
}

const BLOCKED_TRIES = 250
const BLOCKED_MS = 20

/** Renames a file, or a directory to a name that is free. */
export async function move(from: string, to: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await rename(from, to)
    } catch (error) {
      if (!isBlocked(error) || tries === BLOCKED_TRIES) throw error
      await sleep(BLOCKED_MS)
    }
  }
}

/** For `catch`: passes over errors with one of these codes. */
export function passOver(...codes: string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes(codeOf(error) ?? '')) throw error
  }
}

export function pathsIn(path: string, name: string, transport: Transport) {
  return {
    path,
    name,
    transport,
    cluster: join(path, 'postgres'),
    log: join(path, 'postgres.log'),
    clients: join(path, 'clients'),
    lock: join(path, 'lock'),
  }
}
