import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { launchService } from '../../lab/launch_service.ts'
import { residentMegabytes } from '../../lab/process_figures.ts'
import type { Line } from './line.ts'

const START_MS_MAX = 60_000

/**
 * One node of the service, behind a proxy with a fixed address.
 *
 *   down ── start() ──▶ up ── kill, SIGTERM ──▶ down
 *                        └── it exits by itself ──▶ fallen: that is a finding
 */
export class ServiceNode {
  readonly name: string
  readonly line: Line
  readonly logFile: string
  /** How often it exited by itself. */
  fallen = 0
  rss_max_mb = 0
  private readonly settings: Record<string, string>
  private process: ChildProcess | undefined
  private told = true

  constructor(name: string, work: string, line: Line, settings: Record<string, string>) {
    this.name = name
    this.line = line
    this.settings = settings
    this.logFile = join(work, `${name}.log`)
  }

  get url(): string {
    return `http://127.0.0.1:${this.line.port}`
  }

  /** Starts it, repeatedly if it cannot start yet, as a supervisor would; returns when it was ready. */
  async start(environment: Record<string, string> = {}): Promise<number> {
    const deadline = performance.now() + START_MS_MAX
    while (performance.now() < deadline) {
      const port = await this.launch(environment)
      if (port !== undefined) {
        this.line.target = port
        return performance.now()
      }
      await sleep(100)
    }
    throw new Error(`${this.name} did not start: see ${this.logFile}`)
  }

  /** Ends it; gives its exit code, null after a kill. */
  async stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const { process: child } = this
    this.told = true
    if (!child || child.exitCode !== null || child.signalCode !== null) return null
    const gone = once(child, 'exit')
    child.kill(signal)
    const [code] = (await gone) as [number | null]
    return code
  }

  sampleMemory(): void {
    this.rss_max_mb = Math.max(this.rss_max_mb, residentMegabytes(this.pid))
  }

  get pid(): number | undefined {
    return this.process?.pid
  }

  /** ms of CPU that it gets in the next `ms`; undefined when it is down, or this is no Linux. */
  async cpuWithin(ms: number): Promise<number | undefined> {
    const before = this.cpu()
    await sleep(ms)
    const after = this.cpu()
    return before === undefined || after === undefined ? undefined : after - before
  }

  private cpu(): number | undefined {
    try {
      const stat = readFileSync(`/proc/${this.process?.pid}/stat`, 'utf8')
      // After the program's name in parentheses, the 12th and 13th field are its ticks of 10 ms.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return (Number(fields[11]) + Number(fields[12])) * 10
    } catch {
      return undefined
    }
  }

  private async launch(environment: Record<string, string>): Promise<number | undefined> {
    const log = openSync(this.logFile, 'a')
    const { child, url } = launchService({ env: { ...this.settings, ...environment }, stderr: log })
    closeSync(log)
    let ready = false
    child.once('exit', () => {
      if (ready && !this.told) this.fallen += 1
      if (this.process === child) this.line.target = undefined
    })
    this.process = child
    const listening = await url
    if (listening === undefined) return undefined
    ready = true
    this.told = false
    return Number(new URL(listening).port)
  }
}
