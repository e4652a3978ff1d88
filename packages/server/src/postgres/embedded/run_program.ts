import { spawn } from 'node:child_process'

/** A user of the machine by its numbers. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/** How a program ended, and all of its output. */
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
  for (const name of ['PATH', 'LD_LIBRARY_PATH']) {
    const value = process.env[name]
    if (value !== undefined) environment[name] = value
  }
  return environment
}

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
