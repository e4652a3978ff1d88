import { randomBytes } from 'node:crypto'
import { ANNALS, launchService } from '../lab/launch_service.ts'
import { BenchFailure } from './failure.ts'

const READY_MS_MAX = 60_000

/** A process of the service that accepts requests. */
export interface Service {
  url: string
  pid: number
  /** Opens the project `default`. */
  token: string
  /** Opens `/admin/v1`. */
  admin_token: string
  /** ms from the spawn until `/ready` was answered with 200. */
  ready_after_ms: number
  stop(): Promise<void>
}

// The same for all, since processes on one database must agree on the token of the project `default`.
const token = `sk-bench-${randomBytes(24).toString('base64url')}`
const admin_token = `admin-${randomBytes(24).toString('base64url')}`

/**
 * Starts `annals serve` as `npm start` does, with its default settings and `env`, and nothing of this process's own
 * environment. It logs as it does by default, into nothing: what formatting and writing a line costs is in the figures.
 * `bin` is the command of another build, to compare with.
 */
export async function startService(env: Record<string, string>, bin = ANNALS): Promise<Service> {
  const began = performance.now()
  const { child, exited, url: listening } = launch(bin, env, 'ignore')
  const timer = setTimeout(() => child.kill('SIGKILL'), READY_MS_MAX)
  const url = await listening
  clearTimeout(timer)
  if (url === undefined || (await fetch(`${url}/ready`)).status !== 200) {
    child.kill('SIGKILL')
    await tellWhy(bin, env)
    throw new BenchFailure('The service did not start.')
  }
  const ready_after_ms = performance.now() - began
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  return { url, pid: child.pid!, token, admin_token, ready_after_ms, stop }
}

function launch(bin: string, env: Record<string, string>, stderr: 'ignore' | 'inherit') {
  return launchService({
    bin,
    env: { ANNALS_API_KEY: token, ANNALS_ADMIN_TOKEN: admin_token, ...env },
    stderr,
  })
}

/** A second try, whose words reach the person who started the benchmark. */
async function tellWhy(bin: string, env: Record<string, string>): Promise<void> {
  const { child, exited } = launch(bin, env, 'inherit')
  const timer = setTimeout(() => child.kill('SIGTERM'), 5_000)
  await exited
  clearTimeout(timer)
}
