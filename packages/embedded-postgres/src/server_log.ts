import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { type DataDirectory, isBlocked, move } from './data_directory.js'
import { type Account, isRoot } from './run_program.js'

const LARGE_BYTES = 10 * 1024 * 1024

/** Opens the server's log for appending; root hands it to `owner`. A large one is renamed to `.1` first, replacing the previous `.1`. */
export async function openLog({ log }: DataDirectory, owner: Account | undefined): Promise<FileHandle> {
  if ((await logSize(log)) > LARGE_BYTES) await move(log, `${log}.1`)
  // No link is followed: root may be writing into another user's directory.
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants
  const handle = await open(log, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600)
  if (isRoot() && owner) await handle.chown(owner.uid, owner.gid)
  return handle
}

/**
 * Truncates the log of a running server if it has grown large; the server goes on appending to it. On Windows nobody
 * else may write to it meanwhile, so there only a start begins a new one.
 */
export async function boundLog(path: string): Promise<void> {
  if ((await logSize(path)) <= LARGE_BYTES) return
  const { O_NOFOLLOW, O_WRONLY } = constants
  const handle = await open(path, O_NOFOLLOW | O_WRONLY).catch((error) => {
    if (!isBlocked(error)) throw error
  })
  if (!handle) return
  try {
    await handle.truncate(0)
  } finally {
    await handle.close()
  }
}

export async function logSize(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0
}

/** What was logged after `offset`, at most the last 64 KiB of it. */
export async function readLog(path: string, offset: number): Promise<string> {
  const handle = await open(path, 'r').catch(() => undefined)
  if (!handle) return ''
  try {
    const { size } = await handle.stat()
    const start = Math.max(offset, size - 64 * 1024)
    const buffer = Buffer.alloc(Math.max(size - start, 0))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** The line that tells why a PostgreSQL program gave up: the last fatal one, else the last one. */
export function reasonIn(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  // Errors sent to clients while the server is not ready are fatal for them, not for the server.
  const fatal = lines.filter(
    (line) => /\b(FATAL|PANIC|error):/.test(line) && !/database system is/.test(line),
  )
  const line = fatal.at(-1) ?? lines.at(-1) ?? 'nothing'
  return line.replace(/^\d{4}-\d\d-\d\d [\d:.]+ UTC \[\d+\] /, '').trim()
}
