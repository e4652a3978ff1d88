import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type DataDirectory, passOver, syncPath } from './data_directory.js'
import { type Account, isRoot, runProgram } from './run_program.js'

const COPY = 'postgresql-'
const UNFINISHED = 'copying-'
const UNFINISHED_MAX_AGE_MS = 3_600_000

/**
 * Where a copy of PostgreSQL may be: with the data, or, for root, in the machine's cache, which the account that runs
 * PostgreSQL can reach even if the data is below /root.
 */
export function homesForCopy(directory: DataDirectory): string[] {
  return isRoot() ? [directory.path, `/var/cache/${directory.name}`] : [directory.path]
}

/** Whether `account` can reach the files in `home`; creates the machine's cache if it is missing. */
export async function isFitForCopy(
  home: string,
  directory: DataDirectory,
  account: Account | undefined,
): Promise<boolean> {
  if (home !== directory.path) {
    const created = await mkdir(home, { recursive: true })
    if (created !== undefined) await chmod(home, 0o755)
    if ((await stat(home)).uid !== 0) return false
  }
  if (!account) return true
  return (await runProgram('/bin/sh', ['-c', 'test -x "$0"', home], { account })).code === 0
}

/** The name of a copy of this version of the npm package. */
export function copyIn(home: string, version: string): string {
  return join(home, `${COPY}${version}`)
}

/** Removes, if permitted, leftovers of killed starts, and, if nobody else can use them, older copies. */
export async function removeOldCopies(home: string, keep: string, alone: boolean): Promise<void> {
  for (const name of await readdir(home)) {
    const path = join(home, name)
    const made = (await stat(path).catch(() => undefined))?.mtimeMs ?? Date.now()
    const isOlder = name.startsWith(COPY) && alone && path !== keep
    const isLeftOver = name.startsWith(UNFINISHED) && Date.now() - made > UNFINISHED_MAX_AGE_MS
    if (isOlder || isLeftOver) await rm(path, { recursive: true, force: true }).catch(() => {})
  }
}

/**
 * Copies the programs, their libraries and files to `destination`, readable for everybody whatever the umask was at
 * installation; `finish` creates what cannot be copied. The copy gets its name when it is complete and durable. Two
 * processes may do this at once; then the second one's copy is dropped.
 */
export async function copyPackage(
  source: string,
  destination: string,
  finish: (root: string) => Promise<unknown>,
): Promise<void> {
  const home = join(destination, '..')
  const fresh = join(home, `${UNFINISHED}${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    await mkdir(fresh)
    await chmod(fresh, 0o755)
    await copyTree(join(source, 'native'), join(fresh, 'native'))
    await finish(fresh)
    await rename(fresh, destination)
    await syncPath(home)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true }).catch(() => {})
    passOver('ENOTEMPTY', 'EEXIST')(error)
  }
}

async function copyTree(source: string, destination: string): Promise<void> {
  await mkdir(destination)
  await chmod(destination, 0o755)
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const from = join(source, entry.name)
    const to = join(destination, entry.name)
    if (entry.isDirectory()) await copyTree(from, to)
    // Static libraries are for compiling; `finish` creates the links.
    else if (entry.isFile() && !entry.name.endsWith('.a')) await copyDurably(from, to)
  }
  await syncPath(destination)
}

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  await chmod(to, (await stat(from)).mode & 0o100 ? 0o755 : 0o644)
  await syncPath(to)
}
