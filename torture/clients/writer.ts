import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'
import type { Place, SentAppend } from '../check/journal.ts'
import { type Answer, Caller } from './http.ts'
import type { OpenSession, Surroundings, Tenant } from './surroundings.ts'

/** Clients work on the newest sessions: many writers on each, and now and then a fresh one. */
const SESSIONS_IN_USE = 24
const THINK_MS: [number, number] = [20, 220]
const PAUSE_MS: [number, number] = [50, 400]

interface Append {
  path: string
  body: unknown
  headers: Record<string, string>
  markers: string[]
  /** It may be sent again: a key, or ids of its entries' own, keep it from being stored twice. */
  repeatable: boolean
}

/** Writes events, messages, batches and conditional appends, one after the other, and keeps a journal of them. */
export class Writer {
  protected readonly name: string
  protected readonly around: Surroundings
  protected readonly random: Random
  private readonly caller: Caller
  private count = 0

  constructor(name: string, around: Surroundings, random: Random) {
    this.name = name
    this.around = around
    this.random = random
    this.caller = new Caller(around.traffic)
  }

  async run(): Promise<void> {
    while (this.around.isRunning()) {
      if (this.around.sessions.length === 0 || this.random.chance(0.004)) {
        const session = await this.createSession(this.random.pick(this.around.tenants))
        if (session) this.around.sessions.push(session)
      } else await this.append(this.random.pick(this.newestSessions))
      await sleep(this.random.integer(...THINK_MS))
    }
  }

  close(): void {
    this.caller.close()
  }

  protected async createSession(tenant: Tenant, more = this.lasting()): Promise<OpenSession | undefined> {
    const marker = this.marker()
    const sent = { marker, project_id: tenant.project_id, fate: 'open' as const }
    const record: (typeof this.around.journal.sessions)[number] = sent
    this.around.journal.sessions.push(record)
    const body = { configs: { marker }, user: `user-${this.random.integer(1, 50)}`, ...more }
    const headers = { 'idempotency-key': marker }
    const call = { method: 'POST', path: '/session', token: tenant.token, body, headers }
    const answer = await this.untilAnswered(call)
    if (answer.status !== 201) return undefined
    record.fate = 'acknowledged'
    record.session_id = (answer.data as { id: string }).id
    return { session_id: record.session_id, tenant }
  }

  /** Some expire long after the run, whatever the clocks are set to. */
  private lasting(): { expires_in_s?: number } {
    return this.random.chance(0.2) ? { expires_in_s: 1_000_000 } : {}
  }

  private get newestSessions(): OpenSession[] {
    return this.around.sessions.slice(-SESSIONS_IN_USE)
  }

  protected async append(session: OpenSession): Promise<void> {
    if (this.random.chance(0.1)) return this.appendTogether(session.tenant)
    const { path, body, headers, markers, repeatable } = this.makeAppend(session)
    const call = { method: 'POST', path, token: session.tenant.token, body, headers }
    await this.keep(call, session.session_id, markers, repeatable)
  }

  /** Sends an append, and writes down what became of it. */
  protected async keep(
    call: Parameters<Caller['call']>[1],
    session_id: string,
    markers: string[],
    repeatable = true,
  ): Promise<Answer> {
    const { journal } = this.around
    const sent = journal.send(session_id, markers)
    const answer = repeatable
      ? await this.untilAnswered(call)
      : await this.caller.call(this.random.pick(this.around.nodes), call)
    if (answer.status === 200 || answer.status === 201) journal.acknowledge(sent, placesOf(answer.data))
    else settle(sent, answer)
    return answer
  }

  private makeAppend({ session_id }: OpenSession): Append {
    const { random } = this
    const path = `/session/${session_id}`
    const headers: Record<string, string> = {}
    const keyed = random.chance(0.75)
    const kind = random.next()
    if (random.chance(0.15)) headers['if-match'] = `"${this.around.journal.newestSeq(session_id)}"`
    if (kind < 0.45) {
      const marker = this.marker(headers, keyed)
      const body = { type: random.pick(['note', 'tool_call', 'result']), data: { marker, pad: this.pad() } }
      return { path: `${path}/events`, body, headers, markers: [marker], repeatable: keyed }
    }
    if (kind < 0.8) {
      const marker = this.marker(headers, keyed)
      const role = random.pick(['user', 'assistant'])
      const body = { blob: { role, content: marker }, meta: { pad: this.pad() } }
      return { path: `${path}/messages`, body, headers, markers: [marker], repeatable: keyed }
    }
    const first = this.marker(headers, keyed)
    const markers = Array.from({ length: random.integer(1, 12) }, (_, index) => `${first}.${index}`)
    // A batch without a key gives ids to all its entries or to none.
    const ids = keyed ? random.chance(0.5) : random.chance(0.7)
    const entries = markers.map((marker, index) => ({
      ...(index % 3 === 0
        ? { kind: 'message', blob: { role: 'user', content: marker } }
        : { kind: 'event', type: 'step', data: { marker, pad: this.pad() } }),
      ...(ids && { id: randomUUID() }),
    }))
    return { path: `${path}/entries`, body: { entries }, headers, markers, repeatable: keyed || ids }
  }

  /** Appends to some sessions of a tenant, all or nothing. */
  private async appendTogether(tenant: Tenant): Promise<void> {
    const { journal } = this.around
    const sessions = this.newestSessions.filter((session) => session.tenant === tenant)
    const headers: Record<string, string> = {}
    const keyed = this.random.chance(0.75)
    const first = this.marker(headers, keyed)
    const parts = sessions.slice(-this.random.integer(1, 4)).map(({ session_id }, at) => ({
      session_id,
      markers: Array.from({ length: this.random.integer(1, 3) }, (_, index) => `${first}.${at}.${index}`),
      touches: this.random.chance(0.2) ? first : undefined,
    }))
    if (parts.length === 0) return
    const appends = parts.map(({ session_id, markers, touches }) => ({
      session_id,
      entries: markers.map((marker) => ({ kind: 'event', type: 'step', data: { marker } })),
      ...(this.random.chance(0.05) && { if_match: journal.newestSeq(session_id) }),
      ...(touches !== undefined && { configs_patch: { touched: touches } }),
    }))
    const sent = journal.sendTogether(parts)
    const call = { method: 'POST', path: '/entries', token: tenant.token, body: { appends }, headers }
    const answer = keyed
      ? await this.untilAnswered(call)
      : await this.caller.call(this.random.pick(this.around.nodes), call)
    const answered = (answer.data as { appends?: unknown[] } | undefined)?.appends
    sent.forEach((part, index) => {
      if (answer.status === 201) journal.acknowledge(part, placesOf(answered![index]))
      else settle(part, answer)
    })
  }

  /** Sends a request again and again, now to one node and now to the other, until it is settled. */
  protected async untilAnswered(call: Parameters<Caller['call']>[1]): Promise<Answer> {
    for (;;) {
      const answer = await this.caller.call(this.random.pick(this.around.nodes), call)
      const { status } = answer
      if (status !== undefined && status < 500) return answer
      await sleep(this.random.integer(...PAUSE_MS))
    }
  }

  protected marker(headers?: Record<string, string>, keyed = false): string {
    this.count += 1
    const marker = `${this.name}-${this.count}`
    if (headers && keyed) headers['idempotency-key'] = marker
    return marker
  }

  private pad(): string {
    return 'x'.repeat(this.random.chance(0.02) ? 20_000 : this.random.integer(0, 400))
  }
}

/** An answer that is no success: a refusal is final; without an answer, and without a key, it stays in doubt. */
export function settle(sent: SentAppend, { status }: Answer): void {
  if (status === 409 || status === 503) sent.fate = 'refused'
  else if (status === undefined) sent.fate = 'in_doubt'
}

/** Where an answer says that the entries are: of a batch, or of a single one. */
export function placesOf(data: unknown): Place[] {
  const { items } = data as { items?: Place[] }
  return (items ?? [data as Place]).map(({ seq, id }) => ({ seq, id }))
}
