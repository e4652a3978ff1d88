import { setTimeout as sleep } from 'node:timers/promises'
import { inLetters } from '../world/model.ts'
import type { OpenSession } from './surroundings.ts'
import { Writer } from './writer.ts'

const PAUSE_MS: [number, number] = [100, 1_500]
const SESSIONS_OF_TASK = 6

/**
 * Creates sessions of runs that use a tool, which fails, and gives each to a learning space: before its entries, or after
 * them with the order to learn at once.
 */
export class LearningVisitor extends Writer {
  private begun = 0

  override async run(): Promise<void> {
    while (this.around.isRunning()) {
      const session = await this.createSession(this.around.lessons.tenant)
      if (session) await this.record(session)
      await sleep(this.random.integer(...PAUSE_MS))
    }
  }

  private async record(session: OpenSession): Promise<void> {
    this.begun += 1
    const isGivenFirst = this.random.chance(0.5)
    const space_id = this.random.pick(this.around.lessons.space_ids)
    if (isGivenFirst) await this.give(session, space_id, false)
    const first = this.marker()
    const task = inLetters(Math.floor(this.begun / SESSIONS_OF_TASK))
    const group = `${this.name}-${task}`
    const words = { user: `${first}: ${group}`, agent: `${first} goes on: ${task}` }
    this.around.lessons.model.expect(session.session_id, words.user)
    const call = { name: 'book_seat', arguments: { seat: '12A' }, error: 'seat 12A is taken' }
    await this.add(session, [
      { kind: 'message', blob: { role: 'user', content: words.user } },
      { kind: 'message', blob: { role: 'assistant', content: words.agent } },
      { kind: 'event', type: 'tool_call', data: { ...call, marker: this.marker() } },
    ])
    await sleep(this.random.integer(...PAUSE_MS))
    const outcome = { reward: this.random.integer(0, 1), group, marker: this.marker() }
    await this.add(session, [{ kind: 'event', type: 'outcome', data: outcome }])
    if (!isGivenFirst) await this.give(session, space_id, true)
    this.around.lessons.sessions.push({ session_id: session.session_id, space_id })
  }

  private async add({ session_id, tenant }: OpenSession, entries: Entry[]): Promise<void> {
    const markers = entries.map(({ blob, data }) => blob?.content ?? data!.marker)
    const headers = { 'idempotency-key': markers[0]!.replace(/\W+/g, '-') }
    const call = { method: 'POST', path: `/session/${session_id}/entries`, token: tenant.token, headers }
    await this.keep({ ...call, body: { entries } }, session_id, markers)
  }

  /** A second time, after an answer that was lost, it is a conflict. */
  private async give({ session_id, tenant: { token } }: OpenSession, space_id: string, now: boolean) {
    const path = `/learning_spaces/${space_id}/learn`
    await this.untilAnswered({ method: 'POST', path, token, body: { session_id, now } })
  }
}

interface Entry {
  kind: string
  type?: string
  blob?: { role: string; content: string }
  data?: { marker: string }
}
