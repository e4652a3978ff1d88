import { closeSync, openSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuTimesOf } from '../../lab/cpu_wait.ts'
import { LabFailure } from '../../lab/failure.ts'
import { type Launched, launchService } from '../../lab/launch_service.ts'
import { isRunning, openFiles, residentMegabytes } from '../../lab/process_figures.ts'
import { type LoopLine, type Stood, TURNS_MS } from './loop_lines.ts'
import { loggedErrors, NewLines } from './new_lines.ts'

/** Limits that are reached within seconds. */
const SMALL_LIMITS = {
  ANNALS_CONNECTIONS_MAX: '2500',
  ANNALS_DATABASE_CONNECTIONS_MAX: '4',
  ANNALS_DRAIN_MS_MAX: '3000',
  ANNALS_HEADERS_MS_MAX: '4000',
  ANNALS_MEMORY_BYTES_MAX: '67108864',
  ANNALS_QUEUE_BYTES_MAX: '16777216',
  ANNALS_QUEUE_REQUESTS_MAX: '2000',
  ANNALS_REQUEST_MS_MAX: '10000',
  ANNALS_STATEMENT_MS_MAX: '10000',
  // The attackers' receivers are on this machine.
  ANNALS_WEBHOOKS_TO_PRIVATE: 'true',
}
const HEAP_MB_MAX = 192
const RSS_SAMPLE_MS = 100
const COLLECTED_MS_MAX = 15_000
/** Time for requests in flight, then for disconnecting from the database and for PostgreSQL's own shutdown. */
export const STOP_MS_MAX = Number(SMALL_LIMITS.ANNALS_DRAIN_MS_MAX) + 5_000

export interface ServiceOptions {
  /** Where its data, its log and what the watch within it notes are. */
  work: string
  /** The command of another build than this one. */
  bin: string | undefined
  env: Record<string, string>
}

/** How one start differs from the others. */
export interface StartOptions {
  /** Where its log goes, instead of a file below `work`. */
  logFile?: string
  env?: Record<string, string>
}

/**
 * The attacked service, with a small heap, small limits, its own PostgreSQL, and a monitor of its event loop.
 *
 *   down ── start() ──▶ up ── stop(), kill() ──▶ down
 *                        └── it exits by itself ──▶ fallen, which is a finding ── start() ──▶ up
 */
export class Service {
  url = ''
  rss_max_mb = 0
  private readonly options: ServiceOptions
  private readonly lines: NewLines
  private readonly log: NewLines
  private readonly kept: number[] = []
  private stood: Stood[] = []
  private turned: { at: number; on_cpu_ms: number } | undefined
  private launched: Launched | undefined
  private sampling: NodeJS.Timeout | undefined

  constructor(options: ServiceOptions) {
    this.options = options
    this.lines = new NewLines(join(options.work, 'loop.jsonl'))
    this.log = new NewLines(join(options.work, 'service.log'))
  }

  get pid(): number | undefined {
    return this.launched?.child.pid
  }

  get isUp(): boolean {
    return this.launched !== undefined && !hasEnded(this.launched)
  }

  get openFiles(): number {
    return openFiles(this.pid)
  }

  /** @throws LabFailure where it does not start */
  async start({ logFile, env: more = {} }: StartOptions = {}): Promise<void> {
    const { work, bin, env } = this.options
    const watch = new URL('./loop_watch.js', import.meta.url)
    const log = openSync(logFile ?? this.log.file, 'a')
    this.launched = launchService({
      env: {
        LOG_LEVEL: 'warn',
        ANNALS_DATA_DIR: join(work, 'data'),
        SIEGE_LOOP_FILE: this.lines.file,
        ...SMALL_LIMITS,
        ...env,
        ...more,
      },
      nodeOptions: ['--import', watch.href, `--max-old-space-size=${HEAP_MB_MAX}`],
      ...(bin !== undefined && { bin }),
      stderr: log,
    })
    closeSync(log)
    const url = await this.launched.url
    if (url === undefined) throw new LabFailure('The service did not start.')
    this.url = url
    this.turned = undefined
    clearInterval(this.sampling)
    this.sampling = setInterval(() => {
      this.rss_max_mb = Math.max(this.rss_max_mb, residentMegabytes(this.pid))
    }, RSS_SAMPLE_MS)
    await this.turn()
    // Loading its modules alone makes it stand: a watch that noted nothing would find no fault later either.
    if (this.takeStood().length === 0) throw new LabFailure('The watch within the service notes nothing.')
  }

  get rss_mb(): number {
    return residentMegabytes(this.pid)
  }

  /** Blocks of its event loop since the last call. */
  takeStood(): Stood[] {
    this.read()
    return [...this.stood.splice(0), ...this.standing()]
  }

  /** Waits until its loop has turned: what a start costs may be noted only after the line that says it is up. */
  private async turn(): Promise<void> {
    const began_at = Date.now()
    while (this.isUp && (this.turned?.at ?? 0) < began_at && Date.now() - began_at < STOP_MS_MAX) {
      await sleep(TURNS_MS / 10)
      this.read()
    }
  }

  /** What it has logged as errors since the last look, how often each. */
  takeErrors(): Record<string, number> {
    return loggedErrors(this.log.take())
  }

  /** Its memory in MB after a full garbage collection; undefined if it does not report it. */
  async keptMegabytes(): Promise<number | undefined> {
    if (!this.isUp) return undefined
    this.read()
    this.kept.length = 0
    process.kill(this.pid!, 'SIGUSR2')
    for (const until = performance.now() + COLLECTED_MS_MAX; performance.now() < until && this.isUp; ) {
      await sleep(50)
      this.read()
      if (this.kept.length > 0) return this.kept[0]
    }
    return undefined
  }

  /** Sends SIGTERM; gives how it ended and after how long. One that does not end in time is killed. */
  async stop(wait_ms_max: number): Promise<{ code: number | null; took_ms: number }> {
    const { launched } = this
    if (!launched) return { code: 0, took_ms: 0 }
    clearInterval(this.sampling)
    const began = performance.now()
    launched.child.kill('SIGTERM')
    const timer = setTimeout(() => launched.child.kill('SIGKILL'), wait_ms_max)
    const { code } = await launched.exited
    clearTimeout(timer)
    return { code, took_ms: performance.now() - began }
  }

  async kill(): Promise<void> {
    clearInterval(this.sampling)
    this.launched?.child.kill('SIGKILL')
    await this.launched?.exited
  }

  /** The PostgreSQL that it started, if that runs. */
  async postgresPid(): Promise<number | undefined> {
    const files = await readdir(join(this.options.work, 'data'), { recursive: true }).catch(() => [])
    const file = files.find((name) => name.endsWith('postmaster.pid'))
    if (file === undefined) return undefined
    const text = await readFile(join(this.options.work, 'data', file), 'utf8').catch(() => '')
    const pid = Number(text.split('\n', 1)[0])
    return pid > 0 && isRunning(pid) ? pid : undefined
  }

  /** Ends a PostgreSQL that the service has left behind. */
  async endPostgres(pid: number): Promise<void> {
    process.kill(pid, 'SIGQUIT')
    for (let waited_ms = 0; isRunning(pid) && waited_ms < STOP_MS_MAX; waited_ms += 50) await sleep(50)
  }

  private read(): void {
    for (const text of this.lines.take()) {
      const line = JSON.parse(text) as LoopLine
      if (line.kind === 'kept') this.kept.push(line.megabytes)
      else if (line.kind === 'turns') this.turned = line
      else this.stood.push(line)
    }
  }

  /** A loop that is blocked now, and so cannot report it. */
  private standing(): Stood[] {
    const { turned } = this
    const stood_ms = turned === undefined ? 0 : Date.now() - turned.at
    if (!this.isUp || !turned || stood_ms < TURNS_MS * 4) return []
    return [{ stood_ms, cpu_ms: cpuTimesOf(this.pid).on_cpu_ms - turned.on_cpu_ms, waited_ms: 0 }]
  }
}

function hasEnded({ child }: Launched): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
