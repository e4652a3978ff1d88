import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Place } from '../check/journal.ts'
import type { OpenSession, Tenant } from './surroundings.ts'
import { settle, Writer } from './writer.ts'

const PAUSE_MS: [number, number] = [50, 350]
/** Few, so that retractions and appends meet. */
const SESSIONS_IN_USE = 3
/** Of attachments: some have several chunks. */
const BYTES_MAX = 700_000
/** Longer than what stays in a message. */
const INLINE_BYTES = 30_000

/** Appends, retracts, forks, sends attachments and refers to them, and leaves sessions behind that expire. */
export class Editor extends Writer {
  override async run(): Promise<void> {
    while (this.around.isRunning()) {
      const { sessions, tenant } = this.around.edits
      if (sessions.length === 0 || this.random.chance(0.01)) {
        const session = await this.createSession(tenant)
        if (session) sessions.push(session)
      } else await this.edit(this.random.pick(sessions.slice(-SESSIONS_IN_USE)))
      await sleep(this.random.integer(...PAUSE_MS))
    }
  }

  private edit(session: OpenSession): Promise<unknown> {
    const kind = this.random.next()
    if (kind < 0.4) return this.append(session)
    if (kind < 0.75) return this.retract(session)
    if (kind < 0.82) return this.fork(session)
    if (kind < 0.9) return this.attach(session)
    if (kind < 0.96) return this.attachInline(session)
    return this.leaveBehind(session.tenant)
  }

  private async retract({ session_id, tenant }: OpenSession): Promise<void> {
    const { journal } = this.around
    const newest = journal.newestSeq(session_id)
    const asked = this.random.chance(0.7)
      ? { last: this.random.integer(1, 3), ...(this.random.chance(0.3) && { kind: 'message' as const }) }
      : { after_seq: Math.max(0, newest - this.random.integer(0, 3)) }
    const headers = { 'idempotency-key': this.marker() }
    const path = `/session/${session_id}/retractions`
    // Its entry has no marker of its own: the answer says where it is.
    const sent = journal.send(session_id, [])
    const answer = await this.untilAnswered({
      method: 'POST',
      path,
      token: tenant.token,
      body: asked,
      headers,
    })
    if (answer.status !== 200) return settle(sent, answer)
    const { retraction, items } = answer.data as { retraction: Place; items: Place[] }
    sent.markers.push(`retraction ${session_id}/${retraction.seq}`)
    journal.acknowledge(sent, [{ seq: retraction.seq, id: retraction.id }])
    journal.retractions.push({ session_id, seq: retraction.seq, asked, seqs: items.map(({ seq }) => seq) })
  }

  private async fork({ session_id, tenant }: OpenSession): Promise<void> {
    const { journal } = this.around
    const up_to_seq = this.random.integer(0, journal.newestSeq(session_id))
    const marker = this.marker()
    const sent: (typeof journal.sessions)[number] = { marker, project_id: tenant.project_id, fate: 'open' }
    journal.sessions.push(sent)
    const path = `/session/${session_id}/copy`
    const body = { up_to_seq, configs: { marker } }
    const headers = { 'idempotency-key': marker }
    const answer = await this.untilAnswered({ method: 'POST', path, token: tenant.token, body, headers })
    if (answer.status !== 200) {
      sent.fate = 'refused'
      return
    }
    sent.fate = 'acknowledged'
    sent.session_id = (answer.data as { new_session_id: string }).new_session_id
    journal.forks.push({ session_id: sent.session_id, of: session_id, up_to_seq })
  }

  /** Sends bytes, and then an event that refers to them: what was acknowledged cannot be missing. */
  private async attach(session: OpenSession): Promise<void> {
    const { journal, edits } = this.around
    const { token } = session.tenant
    const bytes = randomBytes(this.random.integer(0, BYTES_MAX))
    const sha256 = hashOf(bytes)
    const sent = await this.untilAnswered({ method: 'PUT', path: `/blobs/${sha256}`, token, body: bytes })
    if (sent.status !== 200 && sent.status !== 201) return
    edits.blobs.add(sha256)
    const marker = this.marker()
    const file = { annals_blob: sha256, media_type: 'image/png' }
    const entry = { kind: 'event', type: 'file', data: { marker, file } }
    const { status } = await this.keepEntry(session, marker, entry)
    if (status !== 201)
      journal.lost.push(`the blob ${sha256} was acknowledged, and a reference was ${status}`)
  }

  private async attachInline(session: OpenSession): Promise<void> {
    const bytes = randomBytes(INLINE_BYTES)
    const url = `data:image/png;base64,${bytes.toString('base64')}`
    const marker = this.marker()
    const content = [
      { type: 'text', text: marker },
      { type: 'image_url', image_url: { url } },
    ]
    const entry = { kind: 'message', blob: { role: 'user', content } }
    const { status } = await this.keepEntry(session, marker, entry)
    if (status === 201) this.around.edits.blobs.add(hashOf(bytes))
  }

  private keepEntry({ session_id, tenant: { token } }: OpenSession, marker: string, entry: object) {
    const path = `/session/${session_id}/entries`
    const headers = { 'idempotency-key': marker }
    const body = { entries: [entry] }
    return this.keep({ method: 'POST', path, token, body, headers }, session_id, [marker])
  }

  /** Whether it is still there at the end depends on the clock, which faults set: either is right. */
  private async leaveBehind(tenant: Tenant): Promise<void> {
    const { journal, edits } = this.around
    const session = await this.createSession(tenant, { expires_in_s: this.random.integer(1, 5) })
    const record = journal.sessions.findLast(({ session_id }) => session_id === session?.session_id)
    if (!session || !record) return
    record.fate = 'in_doubt'
    edits.expiring += 1
    const marker = this.marker()
    const sent = journal.send(session.session_id, [marker])
    const path = `/session/${session.session_id}/events`
    const body = { type: 'note', data: { marker } }
    const headers = { 'idempotency-key': marker }
    await this.untilAnswered({ method: 'POST', path, token: tenant.token, body, headers, may_be_gone: true })
    sent.fate = 'in_doubt'
  }
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
