import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { carryOut } from '../../lab/other_process.ts'
import { percentile } from '../../lab/statistics.ts'
import type { OfferOrder, OfferResult } from './offer.ts'
import { summed, takePriority } from './probing.ts'

/*
 * The process that offers requests at a rate, on plain sockets. Nothing is ever sent ahead on a connection: an answer
 * would then wait for the one before it.
 */

const TICK_MS = 1

takePriority(Number(process.argv[2] ?? 0))

carryOut(run)

async function run(order: OfferOrder): Promise<OfferResult> {
  const { urls, connections, seconds, per_second } = order
  const requests = order.tokens.map((token, at) => encode(order, token, at))
  const seen = new Map<string, number[]>()
  const free: Lane[] = []
  /** When each was due that no connection was free for. */
  const waiting: Array<{ number: number; due_at: number }> = []
  const send = (lane: Lane, number: number, due_at: number) => {
    const tenant = requests[number % requests.length]!
    lane.send(tenant[Math.floor(Math.random() * tenant.length)]!, due_at)
    sent += 1
  }
  const freed = (lane: Lane) => {
    const next = waiting.shift()
    if (next) send(lane, next.number, next.due_at)
    else free.push(lane)
  }
  const lanes = Array.from(
    { length: connections },
    (_, at) => new Lane(urls[at % urls.length]!, free, freed, seen),
  )
  await Promise.all(lanes.map((lane) => lane.open()))
  const began = performance.now()
  const cpu = process.cpuUsage()
  let due = 0
  let sent = 0
  const late: number[] = []
  let last = began
  await new Promise<void>((resolve) => {
    const ticking = setInterval(() => {
      const now = performance.now()
      late.push(Math.max(now - last - TICK_MS, 0))
      last = now
      const elapsed_s = Math.min((performance.now() - began) / 1000, seconds)
      for (const until = Math.floor(elapsed_s * per_second); due < until; due += 1) {
        const due_at = order.queued ? began + (due / per_second) * 1000 : performance.now()
        const lane = free.shift()
        if (lane) send(lane, due, due_at)
        else if (order.queued) waiting.push({ number: due, due_at })
      }
      if (elapsed_s < seconds) return
      clearInterval(ticking)
      resolve()
    }, TICK_MS)
  })
  const used = process.cpuUsage(cpu)
  const until = performance.now() + DONE_WITHIN_MS
  while (waiting.length > 0 && performance.now() < until) await sleep(10)
  await Promise.all(lanes.map((lane) => lane.close()))
  return {
    seconds,
    due,
    sent,
    answers: Object.fromEntries([...seen].sort().map(([status, latencies]) => [status, summed(latencies)])),
    cpu_us: used.user + used.system,
    late_p99_ms: percentile(Float64Array.from(late).sort(), 0.99),
  }
}

function encode({ requests, urls }: OfferOrder, token: string, at: number): Buffer[] {
  return requests[at]!.map(({ method, path, body = '' }) =>
    Buffer.from(
      `${method} ${path} HTTP/1.1\r\nHost: ${new URL(urls[0]!).host}\r\nAuthorization: Bearer ${token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  )
}

const DONE_WITHIN_MS = 30_000

/** A connection, which is in `free` while nothing is in flight or waits. It is opened anew when the service closes it. */
class Lane {
  private socket: Socket | undefined
  private received = ''
  private due_at: number | undefined
  private closing: (() => void) | undefined

  private readonly url: URL
  private readonly free: Lane[]
  private readonly freed: (lane: Lane) => void
  private readonly seen: Map<string, number[]>

  constructor(url: string, free: Lane[], freed: (lane: Lane) => void, seen: Map<string, number[]>) {
    this.url = new URL(url)
    this.free = free
    this.freed = freed
    this.seen = seen
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.url
      let opened = false
      const socket = connect({ host: hostname, port: Number(port), noDelay: true }, () => {
        opened = true
        this.freed(this)
        resolve()
      })
      this.socket = socket
      socket.setEncoding('latin1')
      socket.on('data', (chunk: string) => this.receive(chunk))
      socket.on('error', (error) => opened || reject(error))
      socket.once('close', () => {
        if (this.closing) return this.closing()
        if (!opened) return
        if (this.due_at !== undefined) this.note('closed')
        const at = this.free.indexOf(this)
        if (at >= 0) this.free.splice(at, 1)
        void this.open().catch(() => {})
      })
    })
  }

  /** Its time counts from `due_at`. */
  send(bytes: Buffer, due_at: number): void {
    this.due_at = due_at
    this.socket!.write(bytes)
  }

  /** Waits for the answer that is under way, and closes. */
  async close(): Promise<void> {
    const until = performance.now() + DONE_WITHIN_MS
    while (this.due_at !== undefined && performance.now() < until) await sleep(10)
    if (this.due_at !== undefined) this.note('unanswered')
    await new Promise<void>((resolve) => {
      this.closing = resolve
      this.socket!.destroy()
    })
  }

  private receive(chunk: string): void {
    this.received = this.received === '' ? chunk : this.received + chunk
    const end = this.received.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.received)
    if (!length || this.received.length < end + 4 + Number(length[1])) return
    this.note(this.received.slice(9, 12))
    this.received = ''
    this.freed(this)
  }

  private note(outcome: string): void {
    let latencies = this.seen.get(outcome)
    if (!latencies) {
      latencies = []
      this.seen.set(outcome, latencies)
    }
    latencies.push(performance.now() - this.due_at!)
    this.due_at = undefined
  }
}
