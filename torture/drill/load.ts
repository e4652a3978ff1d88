import { setTimeout as sleep } from 'node:timers/promises'

const WRITERS = 16
/** A writer makes a new session before each so many appends. */
const APPENDS_A_SESSION = 10
const PAUSE_MS = 20
const LOOK_EVERY_MS = 100
const WAIT_MS = 30_000

/** What became of a write. `in_doubt`: it was not answered, or with another error than 503. */
export type Fate = 'acknowledged' | 'refused' | 'in_doubt'

interface Written {
  marker: string
  node: string
  fate: Fate
  /** Times are performance.now(), in ms. */
  sent_at: number
  ended_at: number
}

/** Writers that append to sessions of their own at both nodes, and observers that ask each node whether it is ready. */
export class Load {
  readonly written: Written[] = []
  /** How often each node was asked, when, and what it said. */
  readonly readiness: Array<{ node: string; at: number; ready: boolean }> = []
  private readonly urls: readonly string[]
  private readonly key: string
  private running = true
  private count = 0
  private readonly working: Promise<void>[]

  constructor(urls: readonly string[], key: string) {
    this.urls = urls
    this.key = key
    this.working = [
      ...Array.from({ length: WRITERS }, (_, index) => this.write(index)),
      ...urls.map((url) => this.observe(url)),
    ]
  }

  /** Ends the load, when everything that was sent is answered or given up. */
  async end(): Promise<void> {
    this.running = false
    await Promise.all(this.working)
  }

  private async write(index: number): Promise<void> {
    const node = this.urls[index % this.urls.length]!
    let session: string | undefined
    for (let sent = 0; this.running; sent++) {
      if (session === undefined || sent % APPENDS_A_SESSION === 0) {
        session = (await this.send(node, '/api/v1/session', {}, 'session'))?.data?.id ?? session
        if (session === undefined) continue
      }
      this.count += 1
      const marker = `drill-${this.count}`
      await this.send(node, `/api/v1/session/${session}/events`, { type: 'drill', data: { marker } }, marker)
    }
  }

  private async send(node: string, path: string, body: object, marker: string) {
    const sent_at = performance.now()
    let fate: Fate = 'in_doubt'
    let answer: { data?: { id?: string } } | undefined
    try {
      const response = await fetch(node + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(WAIT_MS),
      })
      if (response.ok) fate = 'acknowledged'
      else if (response.status === 503) fate = 'refused'
      answer = (await response.json()) as typeof answer
    } catch {
      // No answer, or half of one.
    }
    this.written.push({ marker, node, fate, sent_at, ended_at: performance.now() })
    if (fate !== 'acknowledged') await sleep(PAUSE_MS)
    return fate === 'acknowledged' ? answer : undefined
  }

  private async observe(node: string): Promise<void> {
    while (this.running) {
      const at = performance.now()
      const ready = await fetch(`${node}/ready`, { signal: AbortSignal.timeout(WAIT_MS) }).then(
        (response) => response.ok,
        () => false,
      )
      this.readiness.push({ node, at, ready })
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** How many writes had each fate. */
  counts(): Record<Fate, number> {
    const counts = { acknowledged: 0, refused: 0, in_doubt: 0 }
    for (const { fate } of this.written) counts[fate] += 1
    return counts
  }

  /** The longest time that a write took, in ms, whatever became of it. */
  slowest(): number {
    return Math.max(0, ...this.written.map(({ sent_at, ended_at }) => ended_at - sent_at))
  }

  /** ms from a moment until each node had acknowledged something that was sent after it. */
  writesAfter(moment: number): number {
    const first = this.urls.map((url) =>
      Math.min(
        ...this.written
          .filter(({ node, fate, sent_at }) => node === url && fate === 'acknowledged' && sent_at >= moment)
          .map(({ ended_at }) => ended_at),
      ),
    )
    return Math.max(...first) - moment
  }

  /** The longest time, in ms, for which a node went on calling itself ready while nothing that was sent to it was acknowledged. */
  readyInVain(): number {
    return Math.max(...this.urls.map((url) => this.readyInVainAt(url)))
  }

  private readyInVainAt(url: string): number {
    const successes = this.written
      .filter(({ node, fate }) => node === url && fate === 'acknowledged')
      .map(({ ended_at }) => ended_at)
      .sort((a, b) => a - b)
    let longest = 0
    let since: number | undefined
    let next = 0
    for (const { node, at, ready } of this.readiness) {
      if (node !== url) continue
      let wrote = false
      for (; next < successes.length && successes[next]! <= at; next++) wrote = true
      if (!ready || wrote) since = undefined
      else since ??= at
      if (since !== undefined) longest = Math.max(longest, at - since)
    }
    return longest
  }
}
