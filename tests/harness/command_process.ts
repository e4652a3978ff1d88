import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { ANNALS_BIN, type Finished, runAnnals, variablesOf } from './annals_process.ts'
import { keepShown } from './leaks.ts'

const PROGRAM = fileURLToPath(new URL('../../lab/kept_process.mjs', import.meta.url))
const END_MS_MAX = 60_000

/** What the kept process answers: how a command ended, and all that it printed. */
type Answer = Pick<Finished, 'code' | 'stdout' | 'stderr'>

interface KeptProcess {
  child: ChildProcess
  isReady: Promise<unknown>
  /** What the process itself prints, which is nothing, unless Node warns or it falls over. */
  said: string[]
  hasEnded: Promise<number | null>
}

let kept: KeptProcess | undefined
let isBusy = false

/**
 * Runs one `annals` command to its end like `runAnnals`, but in a process that the file's other commands share: most of what
 * a command does is to start. For tests of what it prints and changes. What concerns its own process (signals, a pipe, a
 * terminal, a database that ends with it) is for `runAnnals` and `startAnnals`. A command that runs beside another gets its own.
 */
export async function runCommand(
  args: string[],
  env: Record<string, string> = {},
  input?: string,
): Promise<Finished> {
  if (isBusy) return runAnnals(args, env, input)
  isBusy = true
  try {
    kept ??= startKeptProcess()
    const { child, isReady, hasEnded, said } = kept
    const fallen = hasEnded.then((code): never => {
      if (kept?.child === child) kept = undefined
      throw new Error(
        `The process of the commands ended with ${code} during ${args.join(' ')}:\n${said.join('')}`,
      )
    })
    fallen.catch(() => {})
    await Promise.race([isReady, fallen])
    const answered = once(child, 'message') as Promise<[Answer]>
    child.send({ bin: ANNALS_BIN, args, env: variablesOf(env), input })
    const [{ code, stdout, stderr }] = await Promise.race([answered, fallen])
    const [printed, logged] = await Promise.all([stdout, stderr].map(linesOf))
    for (const line of logged!) keepShown(`log-${child.pid}`, line)
    return { code, signal: null, stdout: printed!.join('\n'), stderr: logged!.join('\n') }
  } finally {
    isBusy = false
  }
}

/** Ends the process at the end of a file. If it does not end by itself, a command left something running and would not have ended either. */
export async function endKeptProcess(): Promise<void> {
  if (!kept) return
  const { child, hasEnded, said } = kept
  kept = undefined
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    child.kill('SIGKILL')
  }, END_MS_MAX)
  if (child.connected) child.disconnect()
  const code = await hasEnded
  clearTimeout(timer)
  if (isLate)
    throw new Error('A command of this file left something behind that keeps its process from ending')
  if (code !== 0 || said.length > 0)
    throw new Error(`The process of this file's commands ended with ${code}:\n${said.join('')}`)
}

function startKeptProcess(): KeptProcess {
  const child = fork(PROGRAM, { env: variablesOf(), stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const said: string[] = []
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text) => said.push(text))
  // Not its close, which does not come after a disconnect.
  const hasEnded = once(child, 'exit').then(([code]) => code as number | null)
  return { child, isReady: once(child, 'message'), said, hasEnded }
}

async function linesOf(printed: string): Promise<string[]> {
  const lines: string[] = []
  for await (const line of createInterface({ input: Readable.from([printed]) })) lines.push(line)
  return lines
}
