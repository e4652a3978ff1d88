import { stat } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'
import { codeOf, isBlocked } from './data_directory.js'
import { isRoot, nameOf } from './run_program.js'

/**
 * A reason why the server cannot start. `message` tells in sentences what is wrong and what helps: "choose another data
 * directory", or "use another PostgreSQL server". Only the caller knows how its users do that.
 */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError'
}

/** Messages of the programs that we run for a full disk or an exhausted quota. */
export const FULL_DISK = /No space left on device|Disk quota exceeded/

// The SQLSTATE with which PostgreSQL reports it.
const DISK_FULL = '53100'

/** The sentence about a full disk. */
export function fullDisk(dataDir: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `The disk that holds ${dataDir} is full: free some space, or choose a data directory on another disk.`,
    { cause },
  )
}

/** Turns a file system error into a sentence for the operator; passes an EmbeddedPostgresError unchanged. */
export async function asPlainError(error: unknown, dataDir: string): Promise<EmbeddedPostgresError> {
  if (error instanceof EmbeddedPostgresError) return error
  const code = codeOf(error)
  if (['ENOSPC', 'EDQUOT', DISK_FULL].includes(code ?? '')) return fullDisk(dataDir, error)
  if (code === 'EACCES' || code === 'EPERM' || isBlocked(error)) return await noPermission(error, dataDir)
  const other = 'choose another data directory.'
  if (code === 'ENOTDIR' || code === 'EEXIST') {
    return new EmbeddedPostgresError(`${dataDir} is not a directory: remove the file, or ${other}`, {
      cause: error,
    })
  }
  if (code === 'EROFS') {
    return new EmbeddedPostgresError(`The file system of ${dataDir} is read-only: ${other}`, { cause: error })
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new EmbeddedPostgresError(`The data directory ${dataDir} cannot be used (${reason}): ${other}`, {
    cause: error,
  })
}

async function noPermission(error: unknown, dataDir: string): Promise<EmbeddedPostgresError> {
  const named = (error as { path?: unknown }).path
  const { path, uid } = await nearestVisible(typeof named === 'string' && isAbsolute(named) ? named : dataDir)
  if (isRoot()) {
    const sentence = 'as happens in a container with few capabilities and on network file systems'
    return new EmbeddedPostgresError(
      `Root cannot access ${path} (${codeOf(error)}), ${sentence}: run as an ordinary user, choose ` +
        'a data directory on a local disk, or use another PostgreSQL server.',
      { cause: error },
    )
  }
  const own = process.getuid?.()
  if (own === undefined) {
    const sentence = 'change its permissions, or choose a data directory that you can write to.'
    return new EmbeddedPostgresError(
      `You have no permission for ${path}, or another program has it open: ${sentence}`,
      {
        cause: error,
      },
    )
  }
  const me = await nameOf(own)
  const hint = `choose a data directory that ${me} can write to.`
  const sentence =
    uid === own
      ? `${me} owns ${path} but cannot write to it: change its permissions, or ${hint}`
      : `${path} belongs to ${await nameOf(uid)} and ${me} cannot use it: start as its owner, or ${hint}`
  return new EmbeddedPostgresError(sentence, { cause: error })
}

async function nearestVisible(path: string): Promise<{ path: string; uid: number }> {
  for (let at = path; ; at = dirname(at)) {
    const stats = await stat(at).catch(() => undefined)
    if (stats || at === dirname(at)) return { path: at, uid: stats?.uid ?? 0 }
  }
}
