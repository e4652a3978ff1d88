import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'

export interface Account {
  readonly uid: number
  readonly gid: number
}

export interface Outcome {
  readonly code: number | null
  readonly output: string
}

/**
 * The environment of all programs that we run: a short allowlist. PGOPTIONS and the like would change the server, our
 * secrets do not belong in it, and its messages, some of which we recognize, must be English.
 */
export function programEnvironment(): Record<string, string> {
  const environment: Record<string, string> = { LC_ALL: 'C', TZ: 'UTC' }
  for (const name of ['PATH', 'LD_LIBRARY_PATH', 'COMSPEC']) {
    const value = process.env[name]
    if (value !== undefined) environment[name] = value
  }
  return environment
}

/**
 * How programs are started, so that Ctrl-C in our terminal is for us: in a session of their own, or on Windows on a console
 * of their own without a window. (Detached, they would have none there, and each program that they start would open one.)
 */
export const APART = process.platform === 'win32' ? { windowsHide: true } : { detached: true }

/** Runs a program to its end, under another account if one is given. Rejects if it cannot be executed. */
export function runProgram(
  file: string,
  args: string[],
  options: { cwd?: string; account?: Account | undefined } = {},
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      ...options.account,
      cwd: options.cwd ?? '/',
      env: programEnvironment(),
      ...APART,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const collect = (chunk: Buffer) => {
      output += chunk.toString('utf8')
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** Whether this process is root, as whom PostgreSQL refuses to run. */
export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/**
 * The account under which PostgreSQL runs: our own (undefined), or, if we are root, the first of `owners` that is not
 * root (data stays with its owner), else the machine's `postgres`, else `nobody`.
 */
export async function chooseAccount(owners: (Account | undefined)[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined
  const owner = owners.find((candidate) => candidate !== undefined && candidate.uid !== 0)
  if (owner) return { uid: owner.uid, gid: owner.gid }
  const names = process.platform === 'darwin' ? ['_postgres', 'nobody'] : ['postgres', 'nobody']
  for (const name of names) {
    const account = await lookUp(name)
    if (account) return account
  }
  return { uid: 65534, gid: 65534 }
}

export async function nameOf(uid: number): Promise<string> {
  const row = (await passwd()).find((fields) => Number(fields[2]) === uid)
  return row?.[0] ?? `the user with id ${uid}`
}

async function lookUp(name: string): Promise<Account | undefined> {
  const row = (await passwd()).find((fields) => fields[0] === name)
  if (row) return { uid: Number(row[2]) | 0, gid: Number(row[3]) | 0 }
  // macOS keeps its users in a directory service; `id` asks it. Its nobody is -2, printed as unsigned.
  if (process.platform !== 'darwin') return undefined
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => runProgram('/usr/bin/id', [flag, name])))
  if (uid?.code !== 0 || gid?.code !== 0) return undefined
  return { uid: Number(uid.output) | 0, gid: Number(gid.output) | 0 }
}

async function passwd(): Promise<string[][]> {
  const text = await readFile('/etc/passwd', 'utf8').catch(() => '')
  return text.split('\n').map((line) => line.split(':'))
}
