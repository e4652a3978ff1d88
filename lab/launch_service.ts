import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { endWithUs } from './children.ts'
import { ROOT } from './root.ts'

/** The command of this build. */
export const ANNALS = fileURLToPath(new URL('packages/server/bin/annals.js', ROOT))

export interface LaunchOptions {
  /** Settings of the service. Nothing of this process's own environment reaches it, PATH and HOME aside. */
  env: Record<string, string>
  /** Options of Node itself. */
  nodeOptions?: string[]
  /** The command of another build than this one. */
  bin?: string
  cwd?: string
  /** Where the log goes. */
  stderr: 'ignore' | 'inherit' | 'pipe' | number
}

/** A process of `annals serve`, which does not outlive this one. */
export interface Launched {
  child: ChildProcess
  /** Resolves with where it listens as soon as it accepts requests, and with undefined if it ends before that. */
  url: Promise<string | undefined>
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** Starts `annals serve` on a free port. */
export function launchService(options: LaunchOptions): Launched {
  const { env, nodeOptions = [], bin = ANNALS, cwd = tmpdir(), stderr } = options
  const { PATH = '', HOME = '/' } = process.env
  const child = endWithUs(
    spawn(process.execPath, [...nodeOptions, bin, 'serve'], {
      env: { PATH, HOME, NO_COLOR: '1', PORT: '0', ...env },
      cwd,
      stdio: ['ignore', 'pipe', stderr],
    }),
  )
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  return { child, url: readyUrl(child), exited }
}

async function readyUrl(child: ChildProcess): Promise<string | undefined> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const url = /^Annals is ready at (http:\S+)/.exec(line)?.[1]
    if (url === undefined) continue
    child.stdout!.resume()
    return url
  }
  return undefined
}
