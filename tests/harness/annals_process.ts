import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ADMIN_TOKEN, keepCommandLines, keepShown } from './leaks.ts'

export const ANNALS_BIN = fileURLToPath(new URL('../../packages/server/bin/annals.js', import.meta.url))
export { ADMIN_TOKEN }

const READY_LINE = /^Annals is ready at (http:\/\/\S+)\s*$/
const READY_MS_MAX = 110_000
/** It ends what hangs: how soon a node has to end is for shutdown.test.ts. */
const EXIT_MS_MAX = 60_000
const METRICS_MS_MAX = 2_000

export interface Finished {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** A running `annals serve`. `lines` is what it printed on stdout, `logLines` what it wrote to stderr. */
export interface AnnalsServer {
  url: string
  pid: number
  child: ChildProcess
  lines: string[]
  logLines: string[]
  exited: Promise<Finished>
  /** SIGTERM; resolves when the process is gone, and rejects if it does not go in time. */
  stop(): Promise<Finished>
  /** kill -9; resolves when the process is gone. */
  kill(): Promise<Finished>
}

const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

/**
 * Runs one `annals` command to its end, with `input` on its stdin if there is any. Only the given variables, and
 * none of this process, configure it.
 */
export async function runAnnals(
  args: string[],
  env: Record<string, string> = {},
  input?: string,
): Promise<Finished> {
  const child = launch(args, env, { stdin: input === undefined ? 'ignore' : 'pipe' })
  child.stdin?.end(input)
  return collect(child).exited
}

/** Starts one `annals` command, for a test that does something while it runs; `stdin`: `pipe` to write to it. */
export function startAnnals(
  args: string[],
  env: Record<string, string> = {},
  stdin: 'ignore' | 'pipe' = 'ignore',
): { child: ChildProcess; lines: string[]; logLines: string[]; exited: Promise<Finished> } {
  const child = launch(args, env, { stdin })
  const { lines, logLines, exited } = collect(child)
  return { child, lines, logLines, exited }
}

/**
 * Starts `annals serve` on a free port and resolves when it accepts requests. `stderr` is a file that its log goes to
 * instead of `logLines`.
 */
export async function startServer(
  env: Record<string, string>,
  args: string[] = [],
  { stderr }: { stderr?: number } = {},
): Promise<AnnalsServer> {
  const variables = {
    PORT: '0',
    LOG_LEVEL: 'info',
    ANNALS_ADMIN_TOKEN: ADMIN_TOKEN,
    ANNALS_DATABASE_CONNECTIONS_MAX: '8',
    // On a busy machine a database takes its time; a test in which it is away has its own.
    ANNALS_DATABASE_WAIT_MS_MAX: '10000',
    // Where test files share a database, a node of any of them delivers what is due.
    ANNALS_WEBHOOKS_TO_PRIVATE: 'true',
    // And learns from what is due: when it is killed in the middle of that, the space waits for as long as an answer may take.
    ANNALS_MODEL_MS_MAX: '10000',
    ...env,
  }
  const child = launch(['serve', ...args], variables, { stderr })
  const { stdout, lines, logLines, exited } = collect(child)
  const signal = async (name: NodeJS.Signals) => {
    if (name === 'SIGTERM') await keepWhatItShows(child.pid!, url)
    child.kill(name)
    return within(EXIT_MS_MAX, exited, () => {
      child.kill('SIGKILL')
      return `annals did not exit within ${EXIT_MS_MAX} ms of ${name}\n${logLines.slice(-20).join('\n')}`
    })
  }
  const url = await within(READY_MS_MAX, readyUrl(stdout, exited), () => {
    child.kill('SIGKILL')
    return `annals was not ready within ${READY_MS_MAX} ms\n${[...lines, ...logLines].slice(-20).join('\n')}`
  })
  return {
    url,
    pid: child.pid!,
    child,
    lines,
    logLines,
    exited,
    stop: () => signal('SIGTERM'),
    kill: () => signal('SIGKILL'),
  }
}

function launch(
  args: string[],
  env: Record<string, string>,
  {
    stdin = 'ignore',
    stderr = 'pipe',
  }: { stdin?: 'ignore' | 'pipe'; stderr?: 'pipe' | number | undefined } = {},
): ChildProcess {
  const child = spawn(process.execPath, [ANNALS_BIN, ...args], {
    cwd: tmpdir(),
    env: variablesOf(env),
    stdio: [stdin, 'pipe', stderr],
  })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** All that a command finds in its environment: these, and none of this process. */
export function variablesOf(env: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', HOME = '/' } = process.env
  return { PATH, HOME, NO_COLOR: '1', ANNALS_DATA_DIR: join(tmpdir(), 'annals-test-unused'), ...env }
}

/** Keeps what anyone who can reach the service or its machine sees, for the search at the end of the run. */
async function keepWhatItShows(pid: number, url: string): Promise<void> {
  keepCommandLines()
  try {
    const metrics = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(METRICS_MS_MAX) })
    keepShown(`metrics-${pid}`, await metrics.text())
  } catch {
    // A test stopped it, or took its database away.
  }
}

interface Output {
  stdout: Interface
  lines: string[]
  logLines: string[]
  exited: Promise<Finished>
}

function collect(child: ChildProcess): Output {
  const lines: string[] = []
  const logLines: string[] = []
  const stdout = createInterface({ input: child.stdout! }).on('line', (line) => lines.push(line))
  if (child.stderr) {
    createInterface({ input: child.stderr }).on('line', (line) => {
      logLines.push(line)
      keepShown(`log-${child.pid}`, line)
    })
  }
  const exited = once(child, 'close').then(([code, signal]) => ({
    code,
    signal,
    stdout: lines.join('\n'),
    stderr: logLines.join('\n'),
  }))
  return { stdout, lines, logLines, exited }
}

function readyUrl(stdout: Interface, exited: Promise<Finished>): Promise<string> {
  const ready = new Promise<string>((resolve) => {
    stdout.on('line', (line) => {
      const match = READY_LINE.exec(line)
      if (match) resolve(match[1]!)
    })
  })
  const ended = exited.then((end): never => {
    throw new Error(`annals serve exited with ${end.code ?? end.signal}:\n${end.stdout}\n${end.stderr}`)
  })
  return Promise.race([ready, ended])
}

/** A node ends because it was stopped, with code 0, or because a test killed it; none falls over. */
export function expectOrderlyEnds(ends: Finished[]): void {
  for (const { code, signal, stderr } of ends) {
    if (code !== 0 && signal !== 'SIGKILL') {
      throw new Error(`A node ended with ${code ?? signal}:\n${stderr.split('\n').slice(-20).join('\n')}`)
    }
  }
}

async function within<T>(limit_ms: number, promise: Promise<T>, onTimeout: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(onTimeout())), limit_ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
