import { readdir, stat, statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { asPlainError, describeRemains } from '@annals/embedded-postgres'
import { EMBEDDED_NAME, inSettings } from '@annals/kits/postgres/connection_target.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'

const GIGABYTE = 1_000_000_000
const FREE_LOW = 2 * GIGABYTE
const FREE_CRITICAL = GIGABYTE / 4
/** The share of the file system that should be free, in bytes and in files. */
const FREE_PART = 0.05

/** File systems, by statfs number (Linux), on which acknowledged appends would not be durable. */
const UNSAFE: Record<number, string> = {
  16914836: 'tmpfs, which is memory',
  2240043254: 'ramfs, which is memory',
  2035054128: 'overlayfs, which is deleted with its container',
  26985: 'NFS, whose server may confirm writes that it has not stored',
}

/** A finding named `data directory` means that there is no database to check. */
export async function checkDataDirectory(dataDir: string): Promise<Diagnosis[]> {
  const path = resolve(dataDir)
  const cluster = join(path, 'postgres')
  try {
    const names = await readdir(cluster).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return []
    })
    if (names.length === 0)
      return [well('data directory', `${path}: does not exist yet; the first start creates it`)]
    return [
      await checkDisk(path),
      await checkFileSystem(path),
      await checkRights(cluster),
      await checkRemains(path),
    ]
  } catch (error) {
    const { message } = inSettings(await asPlainError(error, path))
    return [wrong('data directory', 'failure', `${path} cannot be used`, message)]
  }
}

async function checkDisk(path: string): Promise<Diagnosis> {
  const { bavail, blocks, bsize, files, ffree } = await statfs(path)
  const free = bavail * bsize
  const found = `${(free / GIGABYTE).toFixed(1)} GB free at ${path}`
  const todo =
    'Free some space or enlarge the disk: while it is full, appends get 503. `annals prune` and exports help.'
  if (free < FREE_CRITICAL) return wrong('disk', 'failure', found, todo)
  if (files > 0 && ffree / files < FREE_PART)
    return wrong('disk', 'warning', `${found}, and few files can be created`, todo)
  if (free < FREE_LOW || bavail / blocks < FREE_PART) return wrong('disk', 'warning', found, todo)
  return well('disk', found)
}

async function checkFileSystem(path: string): Promise<Diagnosis> {
  const { type } = await statfs(path)
  const unsafe = process.platform === 'linux' ? UNSAFE[type] : undefined
  if (unsafe === undefined) return well('file system', 'a disk')
  const todo =
    'Set ANNALS_DATA_DIR to a directory on a local disk or a volume, and move the data while Annals is stopped.'
  return wrong('file system', 'failure', unsafe, todo)
}

/** On Windows, files have other rights than a mode: those of the folder above, unless somebody changed them. */
export async function checkRights(cluster: string, platform = process.platform): Promise<Diagnosis> {
  if (platform === 'win32') return well('rights', `${cluster} has the rights of the folder above it`)
  const { mode } = await stat(cluster)
  const open = mode & 0o077
  if (open === 0) return well('rights', `${cluster} is closed to other users`)
  const found = `${cluster} is open to others (mode ${(mode & 0o777).toString(8)})`
  return wrong('rights', 'failure', found, `Run: chmod 700 ${cluster}. It contains the data of all projects.`)
}

async function checkRemains(path: string): Promise<Diagnosis> {
  const remains = await describeRemains(path, EMBEDDED_NAME)
  if (remains.length === 0) return well('remains', 'no leftovers of killed processes')
  return wrong(
    'remains',
    'warning',
    remains.join('; '),
    'Nothing to do: the next start or stop removes them.',
  )
}
