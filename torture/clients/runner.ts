import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OpenSession } from './surroundings.ts'
import { Writer } from './writer.ts'

const PAUSE_MS: [number, number] = [50, 400]
const TTL_MS = 2_000
/** Few, so that runners meet. */
const SESSIONS_IN_USE = 4
/** Longer than any lease, and shorter than what the run waits for its writers. */
const DRAINED_MS_MAX = 45_000

interface Claimed {
  session_id: string
  fence: number
  inputs: Array<{ id: string; data: { marker: string } }>
}

/** Sends input, claims sessions that have some, applies it, writes under its fences, asks and answers. */
export class Runner extends Writer {
  override async run(): Promise<void> {
    const { runs } = this.around
    while (this.around.isRunning()) {
      if (runs.sessions.length === 0 || this.random.chance(0.01)) {
        const session = await this.createSession(runs.tenant)
        if (session) runs.sessions.push(session)
      } else if (this.random.chance(0.4))
        await this.send(this.random.pick(runs.sessions.slice(-SESSIONS_IN_USE)))
      else if (this.random.chance(0.2))
        await this.ask(this.random.pick(runs.sessions.slice(-SESSIONS_IN_USE)))
      else await this.work()
      await sleep(this.random.integer(...PAUSE_MS))
    }
    for (const began = performance.now(); performance.now() - began < DRAINED_MS_MAX; ) {
      await this.work()
      if (await this.isDrained()) return
      await sleep(this.random.integer(...PAUSE_MS))
    }
  }

  /** Input is there once it was answered; when it becomes an entry, nobody knows. */
  private async send({ session_id, tenant: { token } }: OpenSession): Promise<void> {
    const marker = this.marker()
    const sent = this.around.journal.send(session_id, [marker])
    const body = { id: randomUUID(), mode: 'queue', kind: 'event', type: 'input', data: { marker } }
    const call = { method: 'POST', path: `/session/${session_id}/inbox`, token, body }
    const { status } = await this.untilAnswered(call)
    sent.fate = status === 201 ? 'acknowledged' : 'refused'
    if (status === 201) this.around.journal.inputs.push(sent)
  }

  private async work(): Promise<void> {
    const { token } = this.around.runs.tenant
    const body = { owner: this.name, ttl_ms: TTL_MS, max: 2 }
    const { data } = await this.untilAnswered({ method: 'POST', path: '/work/claim', token, body })
    for (const { session_id, fence, inputs } of (data as { items: Claimed[] } | undefined)?.items ?? []) {
      // Now and then longer than the lease holds.
      if (this.random.chance(0.1)) await sleep(1.2 * TTL_MS)
      const fence_only = { 'annals-fence': String(fence) }
      const fenced = { method: 'POST', token, headers: fence_only }
      // Its input has senders of its own; what it applied is told apart by them.
      const entries = { apply: inputs.map(({ id }) => id) }
      await this.untilAnswered({ ...fenced, path: `/session/${session_id}/entries`, body: entries })
      for (let writes = this.random.integer(1, 3); writes > 0; writes -= 1) {
        const headers: Record<string, string> = { ...fence_only }
        const marker = this.marker(headers, true)
        const body = { type: 'write', data: { marker, fence } }
        const path = `/session/${session_id}/events`
        await this.keep({ method: 'POST', token, path, body, headers }, session_id, [marker])
      }
      if (this.random.chance(0.7)) {
        const path = `/session/${session_id}/lease?fence=${fence}`
        await this.untilAnswered({ method: 'DELETE', path, token })
      }
    }
  }

  /** Asks, and has two answer at once: one of them wins. */
  private async ask({ session_id, tenant: { token } }: OpenSession): Promise<void> {
    const [id, marker] = [randomUUID(), this.marker()]
    const sent = this.around.journal.send(session_id, [marker])
    const path = `/session/${session_id}/requests`
    const body = { id, kind: 'question', text: marker }
    const { status } = await this.untilAnswered({ method: 'POST', path, token, body })
    sent.fate = status === 201 ? 'acknowledged' : 'refused'
    if (status !== 201) return
    this.around.journal.inputs.push(sent)
    const answer = async (by: string) => {
      const answered = this.around.journal.send(session_id, [by])
      const resolution = { decision: 'answer', answer: by, by }
      await this.untilAnswered({ method: 'POST', path: `/requests/${id}/resolve`, token, body: resolution })
      // A refusal may be about an answer of its own that was lost.
      const { data } = await this.untilAnswered({ method: 'GET', path: `/requests/${id}`, token })
      answered.fate = (data as { by?: string } | undefined)?.by === by ? 'acknowledged' : 'refused'
      if (answered.fate === 'acknowledged') this.around.journal.inputs.push(answered)
    }
    await Promise.all([answer(this.marker()), answer(this.marker())])
  }

  private async isDrained(): Promise<boolean> {
    const { token } = this.around.runs.tenant
    for (const { session_id } of this.around.runs.sessions) {
      const { data } = await this.untilAnswered({ method: 'GET', path: `/session/${session_id}`, token })
      if ((data as { run?: { pending: number } } | undefined)?.run?.pending) return false
    }
    return true
  }
}
