import { starvation } from '../../lab/cpu_wait.ts'
import type { Random } from '../../lab/random.ts'
import type { ServiceNode } from '../world/node.ts'
import { Caller } from './http.ts'
import type { OpenSession, Surroundings } from './surroundings.ts'
import { placesOf, settle } from './writer.ts'

const EVERY_MS = 100
const WAIT_MS = 15_000

/** One request of a probe. Times are performance.now(), in ms. */
export interface Probed {
  node: ServiceNode
  what: 'write' | 'read'
  started_at: number
  /** Undefined while it is not answered. */
  ended_at?: number
  status?: number | undefined
  /** Of its time, what a busy machine cost it. */
  starved_ms?: number
}

/**
 * Asks one node ten times a second, to write and to read, without waiting for answers. This measures how long the
 * service was unavailable and how it reported that, independently of clients that pause between attempts.
 */
export class Probe {
  /** Requests since `forget`, in the order in which they were sent. */
  probed: Probed[] = []
  readonly node: ServiceNode
  private readonly around: Surroundings
  private readonly random: Random
  private readonly session: OpenSession
  private readonly timer: NodeJS.Timeout
  private count = 0

  constructor(node: ServiceNode, session: OpenSession, around: Surroundings, random: Random) {
    this.node = node
    this.session = session
    this.around = around
    this.random = random
    this.timer = setInterval(() => this.ask(), EVERY_MS)
  }

  /** Drops what was measured before. */
  forget(): void {
    this.probed = []
  }

  stop(): void {
    clearInterval(this.timer)
  }

  /** ms until a node wrote again after a moment; undefined while it has not. */
  wroteAfter(moment: number): number | undefined {
    const first = this.probed.find(
      ({ what, status, ended_at = 0 }) => what === 'write' && status === 201 && ended_at >= moment,
    )
    return first && first.ended_at! - moment
  }

  /** How often its writes since a moment were answered what, in words. */
  metAfter(moment: number): string {
    const counts = new Map<string, number>()
    for (const { what, started_at, ended_at, status } of this.probed) {
      if (what !== 'write' || started_at < moment) continue
      const how = ended_at === undefined ? 'waiting' : String(status ?? 'unanswered')
      counts.set(how, (counts.get(how) ?? 0) + 1)
    }
    return `${this.node.name}: ${[...counts].map(([how, count]) => `${count} ${how}`).join(', ') || 'nothing sent'}`
  }

  private ask(): void {
    if (!this.around.isRunning()) return
    void this.write()
    if (this.random.chance(0.5)) void this.read()
  }

  private async write(): Promise<void> {
    this.count += 1
    const marker = `probe-${this.node.name}-${this.count}`
    const { session_id, tenant } = this.session
    const sent = this.around.journal.send(session_id, [marker])
    const answer = await this.measure('write', {
      method: 'POST',
      path: `/session/${session_id}/entries`,
      token: tenant.token,
      body: { entries: [{ kind: 'event', type: 'probe', data: { marker } }] },
      wait_ms: WAIT_MS,
    })
    if (answer.status === 201) this.around.journal.acknowledge(sent, placesOf(answer.data))
    else settle(sent, answer)
  }

  private async read(): Promise<void> {
    const { session_id, tenant } = this.session
    const path = `/session/${session_id}`
    await this.measure('read', { method: 'GET', path, token: tenant.token, wait_ms: WAIT_MS })
  }

  private async measure(what: Probed['what'], call: Parameters<Caller['call']>[1]) {
    const probed: Probed = { node: this.node, what, started_at: performance.now() }
    this.probed.push(probed)
    const starvedSince = starvation(this.node.pid)
    // A connection of its own: what waits must not hold up the next one.
    const caller = new Caller(this.around.traffic)
    const answer = await caller.call(this.node, call)
    caller.close()
    probed.ended_at = performance.now()
    probed.status = answer.status
    probed.starved_ms = starvedSince()
    return answer
  }
}
