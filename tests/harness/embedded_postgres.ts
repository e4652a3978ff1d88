import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runAnnals } from './annals_process.ts'

let prepared: Promise<string> | undefined

/** Makes `dataDir` as `annals migrate` leaves it: a copy of one that this process has made, without a project. */
export async function prepareDataDir(dataDir: string): Promise<void> {
  prepared ??= makeDataDir()
  await promisify(execFile)('cp', ['-a', await prepared, dataDir])
}

async function makeDataDir(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'annals-prepared-'))
  process.once('exit', () => rmSync(home, { recursive: true, force: true }))
  const { code, stderr } = await runAnnals(['migrate'], { ANNALS_DATA_DIR: join(home, 'data') })
  if (code !== 0) throw new Error(`annals migrate failed (${code}): ${stderr}`)
  return join(home, 'data')
}

/**
 * The process id of the PostgreSQL server that works in one of the data directories in `directory`; undefined when none
 * does. It reads no other file: a server that stops deletes files and folders while the test looks.
 */
export async function postmasterPid(directory: string): Promise<number | undefined> {
  for (const dataDir of await readdir(directory)) {
    const file = join(directory, dataDir, 'postgres', 'postmaster.pid')
    const pid = existsSync(file) ? Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10) : NaN
    if (pid > 0 && isAlive(pid)) return pid
  }
  return undefined
}

/** A process that has ended but that its parent has not yet asked about (a zombie) is not alive. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    // Without /proc the signal alone decides.
    return (error as NodeJS.ErrnoException).syscall !== 'kill' && !existsSync('/proc/self')
  }
}
