import { starvation } from '../../lab/cpu_wait.ts'
import { type Answer, Caller, dataOf, type Outcome } from '../http.ts'
import type { VictimTenant } from '../world/tenants.ts'
import { Ledger, missing } from './ledger.ts'
import { Tail } from './tail.ts'

/** How often each of its operations comes. */
const EVERY_MS = 200
/** Later answers count as failures, not counting time in which the service or this process had no processor. */
const GOOD_MS_MAX = 5_000
const WAIT_MS_MAX = 40_000
const SHOWN_MS_MAX = 12_000
const READ_PAGE = 200

/** One request of the victim. */
export interface Deed {
  what: string
  began_at: number
  took_ms: number
  /** Of this, what a busy machine cost. */
  starved_ms: number
  outcome: Outcome | 'incomplete' | 'not shown'
  isGood: boolean
}

interface Page {
  items: Array<{ seq: number; data: { marker?: string } }>
  has_more: boolean
  next_cursor: string
}

/**
 * A tenant with ordinary requests, a few a second, each sent without waiting for the previous one: so a blocked
 * service is measured instead of waited for.
 */
export class Victim {
  readonly ledger = new Ledger()
  private readonly tenant: VictimTenant
  private deeds: Deed[] = []
  private readonly pending = new Set<Promise<void>>()
  private pid: number | undefined
  private caller: Caller | undefined
  private tail: Tail | undefined
  private timer: NodeJS.Timeout | undefined
  /** The session that it works on, the newest one; and the one that it tails. */
  private session = ''
  private tailed = ''
  private count = 0

  constructor(tenant: VictimTenant) {
    this.tenant = tenant
  }

  /** Goes to work at a service, which may be another than last time. */
  async start({ url, pid }: { url: string; pid: number | undefined }): Promise<void> {
    this.pid = pid
    this.caller = new Caller(url)
    if (this.tailed === '') {
      this.tailed = await this.newSession()
      this.session = this.tailed
    }
    const shown = this.ledger.entriesOf(this.tailed).at(-1)?.seq ?? 0
    this.tail = new Tail(url, this.tailed, this.tenant.key, shown)
    const operations = Object.entries(this.operations)
    this.timer = setInterval(() => {
      this.count += 1
      const [what, work] = operations[this.count % operations.length]!
      this.begin(what, work)
    }, EVERY_MS / operations.length)
  }

  /** Waits for the requests in flight, and stops. */
  async stop(): Promise<void> {
    clearInterval(this.timer)
    await Promise.all(this.pending)
    this.tail?.close()
    this.caller?.close()
  }

  /** What it did since the last time that it was asked, as far as it has ended. */
  take(): Deed[] {
    const taken = this.deeds
    this.deeds = []
    return taken
  }

  /** What it has done since a moment and not been asked for. */
  since(moment: number): Deed[] {
    return this.deeds.filter(({ began_at }) => began_at >= moment)
  }

  private readonly operations = {
    create: async () => {
      this.session = await this.newSession()
    },
    append: async () => void (await this.append(this.session)),
    page: async () => {
      const { session } = this
      const acknowledged = [...this.ledger.entriesOf(session)]
      const page = await this.expect(200, { path: `/api/v1/session/${session}/events?limit=${READ_PAGE}` })
      if (missing(session, acknowledged, keptIn(dataOf<Page>(page))).length > 0) throw new Unmet('incomplete')
    },
    list: async () => void (await this.expect(200, { path: '/api/v1/session?limit=20&time_desc=true' })),
    tail: async () => {
      const seq = await this.append(this.tailed)
      if (!(await this.tail!.shows(seq, SHOWN_MS_MAX))) throw new Unmet('not shown')
    },
    'rare key': async () => {
      const { rare_keys } = this.tenant
      const key = rare_keys[Math.floor(this.count / 8) % rare_keys.length]!
      await this.expect(200, { path: '/api/v1/ping', key })
    },
    ready: async () => void (await this.expect(200, { path: '/ready' })),
    health: async () => void (await this.expect(200, { path: '/health' })),
  }

  private begin(what: string, work: () => Promise<void>): void {
    const began_at = performance.now()
    const starvedSince = starvation(this.pid)
    const done = work()
      .then(() => 200 as const)
      .catch((error: unknown) => {
        if (error instanceof Unmet) return error.outcome
        throw error
      })
      .then((outcome) => {
        const took_ms = performance.now() - began_at
        const starved_ms = starvedSince()
        const isGood = outcome === 200 && took_ms - starved_ms <= GOOD_MS_MAX
        this.deeds.push({ what, began_at, took_ms, starved_ms, outcome, isGood })
      })
      .finally(() => this.pending.delete(done))
    this.pending.add(done)
  }

  private async newSession(): Promise<string> {
    const body = { configs: { agent: 'victim', at: this.count } }
    const answer = await this.expect(201, { method: 'POST', path: '/api/v1/session', body })
    const { id } = dataOf<{ id: string }>(answer)!
    this.ledger.open(id)
    return id
  }

  private async append(session: string): Promise<number> {
    const marker = `victim-${this.count}`
    const path = `/api/v1/session/${session}/events`
    const body = { type: 'step', data: { marker } }
    const answer = await this.expect(200, { method: 'POST', path, body })
    const { seq } = dataOf<{ seq: number }>(answer)!
    this.ledger.keep(session, { seq, marker })
    return seq
  }

  private async expect(status: number, call: Parameters<Caller['call']>[0]): Promise<Answer> {
    const began_at = performance.now()
    const starvedSince = starvation(this.pid)
    const isLate = () => performance.now() - began_at - starvedSince() > GOOD_MS_MAX
    const answer = await this.caller!.call({ key: this.tenant.key, wait_ms: WAIT_MS_MAX, isLate, ...call })
    if (answer.outcome !== status) throw new Unmet(answer.outcome)
    return answer
  }
}

class Unmet extends Error {
  readonly outcome: Deed['outcome']
  constructor(outcome: Deed['outcome']) {
    super(`${outcome}`)
    this.outcome = outcome
  }
}

function keptIn(page: Page | undefined): Array<{ seq: number; marker: string }> | undefined {
  return page?.items.map(({ seq, data }) => ({ seq, marker: data.marker ?? '' }))
}

/** Reads back all that the victim was told is stored; gives what is missing. */
export async function readBack(url: string, { key }: VictimTenant, ledger: Ledger): Promise<string[]> {
  const caller = new Caller(url)
  const found: string[] = []
  for (const session of ledger.sessionIds) {
    const stored: Array<{ seq: number; marker: string }> = []
    let there = true
    for (let cursor = '', more = true; more && there; ) {
      const path = `/api/v1/session/${session}/events?limit=${READ_PAGE}${cursor && `&cursor=${cursor}`}`
      const page = dataOf<Page>(await caller.call({ path, key, wait_ms: 30_000 }))
      there = page !== undefined
      stored.push(...(keptIn(page) ?? []))
      cursor = page?.next_cursor ?? ''
      more = page?.has_more ?? false
    }
    found.push(...missing(session, ledger.entriesOf(session), there ? stored : undefined))
  }
  caller.close()
  return found
}
