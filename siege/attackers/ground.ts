import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Random, seededRandom } from '../../lab/random.ts'
import { type Answer, type Call, Caller, type Outcome } from '../http.ts'

/** What the attackers know: a service, keys of their own project, and what they have stored in it. */
export interface Target {
  url: string
  key: string
  read_key: string
  /** Of a project of theirs with redaction. */
  redacted_key: string
  /** For one session of theirs, and for 30 s. */
  expiring_token: string
  /** Many small events. */
  long_session: string
  /** A few messages of a megabyte. */
  big_session: string
}

/** What the process of the attackers is told. */
export interface AttackOrder {
  name: string
  seed: number
  seconds: number
  isShort: boolean
  target: Target
}

/** How often each answer came. */
export type Answers = Record<string, number>

/** Not the victim's address: loopback has more than one, on Linux. */
const FROM = process.platform === 'linux' ? '127.0.0.9' : undefined
const CONNECTED_MS_MAX = 5_000
const ANSWERED_MS = 500

/** What an attack has to work with. */
export class Ground {
  readonly target: Target
  readonly random: Random
  readonly isShort: boolean
  readonly seconds: number
  readonly answers: Answers = {}
  private readonly until: number
  private readonly callers: Caller[] = []
  private readonly sockets = new Set<Socket>()

  constructor({ name, seed, seconds, isShort, target }: AttackOrder) {
    this.target = target
    this.random = seededRandom(seed).fork(name)
    this.isShort = isShort
    this.seconds = seconds
    this.until = performance.now() + seconds * 1_000
  }

  get isOver(): boolean {
    return performance.now() >= this.until
  }

  /** One number for the short form, another for the full one. */
  scaled(short: number, full: number): number {
    return this.isShort ? short : full
  }

  /** Waits until the attack is over. */
  async lastOut(): Promise<void> {
    await sleep(Math.max(0, this.until - performance.now()))
  }

  note(outcome: Outcome): void {
    this.answers[outcome] = (this.answers[outcome] ?? 0) + 1
  }

  /** Sends a request and counts its answer. */
  ask = async (call: Call): Promise<Answer> => {
    let [caller] = this.callers
    if (!caller) {
      caller = new Caller(this.target.url, { sockets_max: 512, from: FROM })
      this.callers.push(caller)
    }
    // An attacker leaves when the attack is over.
    const left_ms = Math.max(0, this.until - performance.now()) + ANSWERED_MS
    const answer = await caller.call({ ...call, wait_ms: Math.min(left_ms, call.wait_ms ?? left_ms) })
    this.note(answer.outcome)
    // Where nothing listens, or nothing is answered any more, a lane would turn without a pause.
    if (typeof answer.outcome !== 'number') await sleep(50)
    return answer
  }

  /** Does something again and again in several lanes, until the attack is over. */
  async lanes(count: number, work: (lane: number) => Promise<unknown>): Promise<void> {
    const lane = async (at: number) => {
      while (!this.isOver) await work(at)
    }
    await Promise.all(Array.from({ length: count }, (_, at) => lane(at)))
  }

  /**
   * Opens a connection on which an attack writes bytes of its own. What comes back is read, and its statuses are counted,
   * unless `isStalled`. Undefined when there is no connection to be had.
   */
  async open({ isStalled = false } = {}): Promise<Socket | undefined> {
    const { hostname, port } = new URL(this.target.url)
    const socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      ...(FROM && { localAddress: FROM }),
    })
    this.sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.sockets.delete(socket))
    const opened = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), CONNECTED_MS_MAX)
      const end = (isOpen: boolean) => {
        clearTimeout(timer)
        resolve(isOpen)
      }
      socket.once('connect', () => end(true))
      socket.once('close', () => end(false))
    })
    if (!opened) {
      socket.destroy()
      this.note('refused')
      return undefined
    }
    if (isStalled) socket.pause()
    else this.countStatuses(socket)
    return socket
  }

  private countStatuses(socket: Socket): void {
    let answered = false
    socket.on('data', (bytes: Buffer) => {
      for (const [, status] of bytes.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        answered = true
        this.note(Number(status))
      }
    })
    socket.once('close', () => {
      if (!answered && !this.isLeaving) this.note('closed')
    })
  }

  private isLeaving = false

  /** Leaves all connections. */
  leave(): void {
    this.isLeaving = true
    for (const caller of this.callers) caller.close()
    for (const socket of this.sockets) socket.resetAndDestroy()
  }
}

/** The head of a request that an attack writes itself. */
export function head(method: string, path: string, headers: Record<string, string | number> = {}): string {
  const lines = Object.entries({ Host: 'annals', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return `${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`
}
