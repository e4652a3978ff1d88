import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { ConnectionTarget } from './database.js'
import { singleConnection } from './single_connection.js'

const CHANNEL = 'annals_log'
const RECONNECT_MS = 1_000
/** Most time to wait for a server, which may be one that a failover abandoned. */
const ANSWER_MS_MAX = 5_000
const END_MS_MAX = 500
/** How long a node notifies after it last heard of a listener, and how often a listener announces itself. */
const INTEREST_MS = 30_000
const ANNOUNCE_MS = 10_000
/** NOTIFY allows payloads of up to 8,000 bytes; a name takes up to 38. */
const SESSIONS_A_RING_MAX = 150

/**
 * A bell on a connection of its own.
 *
 *   disconnected ── connect, LISTEN ──▶ connected ── error ──▶ disconnected (retries every second)
 *
 * A node with tails announces its interest; the others notify for a while after they heard that. So a service without
 * tails pays nothing: a NOTIFY is a commit of its own.
 */
export class PostgresBell implements Bell {
  private client: pg.Client | undefined
  private onRingListener: OnRing = () => {}
  private onHeardListener: () => void = () => {}
  private readonly waiting = new Map<string, Set<string>>()
  private wanted = false
  private somebodyListensUntil = 0
  private sending = false
  private closed = false
  private readonly node = Math.random().toString(36).slice(2)
  private readonly announcements: NodeJS.Timeout

  constructor(private readonly target: ConnectionTarget) {
    void this.connect()
    this.announcements = setInterval(() => this.announce(), ANNOUNCE_MS)
    this.announcements.unref()
  }

  onRing(listener: OnRing): void {
    this.onRingListener = listener
  }

  onHeard(listener: () => void): void {
    this.onHeardListener = listener
  }

  listen(wanted: boolean): void {
    if (wanted && !this.wanted) {
      this.wanted = true
      this.announce()
    }
    this.wanted = wanted
  }

  ring(project_id: string, session_ids: ReadonlySet<string>): void {
    if (performance.now() > this.somebodyListensUntil) return
    const sessions = this.waiting.get(project_id) ?? new Set<string>()
    this.waiting.set(project_id, sessions)
    for (const session_id of session_ids) sessions.add(session_id)
    void this.send()
  }

  async close(): Promise<void> {
    this.closed = true
    clearInterval(this.announcements)
    // A server that hangs never closes its side.
    const ended = this.client?.end().catch(() => {})
    await Promise.race([ended, sleep(END_MS_MAX, undefined, { ref: false })])
  }

  private async connect(): Promise<void> {
    const options = { keepAlive: true, connectionTimeoutMillis: 5_000, query_timeout: ANSWER_MS_MAX }
    const client = singleConnection(this.target, 'annals bell', options)
    let lost = false
    const reconnect = () => {
      if (lost) return
      lost = true
      if (this.client === client) this.client = undefined
      void client.end().catch(() => {})
      if (!this.closed) setTimeout(() => void this.connect(), RECONNECT_MS).unref()
    }
    client.on('error', reconnect)
    client.on('end', reconnect)
    client.on('notification', ({ payload }) => this.hear(payload ?? ''))
    try {
      await client.connect()
      await client.query(`LISTEN ${CHANNEL}`)
      this.client = client
      if (this.wanted) this.announce()
    } catch {
      reconnect()
    }
    if (this.closed) await client.end().catch(() => {})
  }

  private announce(): void {
    if (this.wanted) void this.notify(`listening ${this.node}`)
  }

  private hear(payload: string): void {
    const [what, subject, list] = payload.split(' ')
    if (what === 'listening') {
      if (subject === this.node) this.onHeardListener()
      else this.somebodyListensUntil = performance.now() + INTEREST_MS
    } else if (what === this.node) {
      return
    } else if (subject && list) {
      this.onRingListener(subject, list.split(','))
    }
  }

  /** Sends what waits. What arrives meanwhile goes with the next one: no timer, as with appends. */
  private async send(): Promise<void> {
    if (this.sending) return
    this.sending = true
    for (const [project_id, sessions] of this.waiting) {
      this.waiting.delete(project_id)
      const ids = [...sessions]
      for (let from = 0; from < ids.length; from += SESSIONS_A_RING_MAX) {
        await this.notify(
          `${this.node} ${project_id} ${ids.slice(from, from + SESSIONS_A_RING_MAX).join(',')}`,
        )
      }
    }
    this.sending = false
  }

  private async notify(payload: string): Promise<void> {
    const { client } = this
    try {
      // A notification need not survive a crash, so its commit does not wait for the disk. Set for this transaction
      // only: behind a pooler, a session setting would also apply to somebody's appends.
      await client?.query("SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", [
        CHANNEL,
        payload,
      ])
    } catch {
      // The connection broke, or the server is now a standby, which takes no notifications. Its end has another one made,
      // and polling covers what was missed.
      void client?.end().catch(() => {})
    }
  }
}

/** Called with the sessions of a project that have grown. */
export type OnRing = (project_id: string, session_ids: string[]) => void

/** Tells other nodes on the same database that logs have grown, over LISTEN and NOTIFY. Only a hint. */
export interface Bell {
  /** Notifies the other nodes, if one of them has said that it listens. */
  ring(project_id: string, session_ids: ReadonlySet<string>): void
  listen(wanted: boolean): void
  onRing(listener: OnRing): void
  /** Called when the other nodes know that this one listens: from now on they notify it. */
  onHeard(listener: () => void): void
  close(): Promise<void>
}

/** Does nothing, for targets without LISTEN: live tails then poll. */
export const SILENT_BELL: Bell = {
  ring: () => {},
  listen: () => {},
  onRing: () => {},
  onHeard: () => {},
  close: async () => {},
}
