import { stat } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'
import { StartError } from '../../errors.js'
import { codeOf } from './data_directory.js'
import { isRoot, nameOf } from './run_program.js'

/** Messages of the programs that we run for a full disk or an exhausted quota. */
export const FULL_DISK = /No space left on device|Disk quota exceeded/

// The SQLSTATE with which PostgreSQL reports it.
const DISK_FULL = '53100'

/** The sentence about a full disk. */
export function fullDisk(dataDir: string, cause?: unknown): StartError {
  return new StartError(
    `The disk that holds ${dataDir} is full: free some space, or set ANNALS_DATA_DIR to a directory on another disk.`,
    { cause },
  )
}

/** Turns a file system error into a sentence for the operator; passes a StartError unchanged. */
export async function asStartError(error: unknown, dataDir: string): Promise<StartError> {
  if (error instanceof StartError) return error
  const code = codeOf(error)
  if (['ENOSPC', 'EDQUOT', DISK_FULL].includes(code ?? '')) return fullDisk(dataDir, error)
  if (code === 'EACCES' || code === 'EPERM') return await noPermission(error, dataDir)
  const other = 'set ANNALS_DATA_DIR to another directory.'
  if (code === 'ENOTDIR' || code === 'EEXIST') {
    return new StartError(`${dataDir} is not a directory: remove the file, or ${other}`, { cause: error })
  }
  if (code === 'EROFS') {
    return new StartError(`The file system of ${dataDir} is read-only: ${other}`, { cause: error })
  }
  const reason = error instanceof Error ? error.message : String(error)
  return new StartError(`The data directory ${dataDir} cannot be used (${reason}): ${other}`, {
    cause: error,
  })
}

async function noPermission(error: unknown, dataDir: string): Promise<StartError> {
  const named = (error as { path?: unknown }).path
  const { path, uid } = await nearestVisible(typeof named === 'string' && isAbsolute(named) ? named : dataDir)
  if (isRoot()) {
    const sentence = 'as happens in a container with few capabilities and on network file systems'
    return new StartError(
      `Root cannot access ${path} (${codeOf(error)}), ${sentence}: run as an ordinary user, set ` +
        'ANNALS_DATA_DIR to a directory on a local disk, or set DATABASE_URL to a server.',
      { cause: error },
    )
  }
  const own = process.getuid?.() ?? -1
  const me = await nameOf(own)
  const hint = `set ANNALS_DATA_DIR to a directory that ${me} can write to.`
  const sentence =
    uid === own
      ? `${me} owns ${path} but cannot write to it: change its permissions, or ${hint}`
      : `${path} belongs to ${await nameOf(uid)} and ${me} cannot use it: start as its owner, or ${hint}`
  return new StartError(sentence, { cause: error })
}

async function nearestVisible(path: string): Promise<{ path: string; uid: number }> {
  for (let at = path; ; at = dirname(at)) {
    const stats = await stat(at).catch(() => undefined)
    if (stats || at === dirname(at)) return { path: at, uid: stats?.uid ?? 0 }
  }
}
