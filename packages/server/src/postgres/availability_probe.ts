import pg from 'pg'
import type { ConnectionTarget } from './database.js'

const LOOK_EVERY_MS = 100
/** A statement that takes longer than this makes us ask whether the database is still there. */
const PATIENCE_MS = 200

/**
 * Tells a database that has fallen silent (it hangs, its machine is gone, a cable is pulled) from one that takes its
 * time over a statement: while a statement takes long, it asks for an answer to nothing on a connection of its own.
 *
 *   beating ── no answer for `silent_ms` ──▶ silent ── an answer, even a refusal ──▶ beating
 *
 * Silence ends every statement under way and refuses new ones at once. Without this, each would wait for as long
 * as the longest list may take. While all statements are quick, nothing is asked and no connection is held.
 */
export class AvailabilityProbe {
  private readonly waiting = new Set<{ since: number; reject: (error: Error) => void }>()
  private readonly timer: NodeJS.Timeout
  private client: pg.Client | undefined
  /** For how long it has been asked, not counting the time in which this process was held up; undefined: it is not. */
  private asked_for_ms: number | undefined
  /** Tells one question from the next. */
  private questions = 0
  private looked_at = performance.now()
  private isSilent = false
  private closed = false

  constructor(
    private readonly target: ConnectionTarget,
    private readonly silent_ms: number,
  ) {
    this.timer = setInterval(() => this.look(), LOOK_EVERY_MS)
    this.timer.unref()
  }

  /** Whether the database has fallen silent. */
  get silent(): boolean {
    return this.isSilent
  }

  /** What a statement comes to, or an error as soon as the database falls silent. */
  orSilence<T>(statement: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const entry = { since: performance.now(), reject }
      this.waiting.add(entry)
      statement.then(resolve, reject).finally(() => this.waiting.delete(entry))
    })
  }

  async close(): Promise<void> {
    this.closed = true
    clearInterval(this.timer)
    this.drop()
  }

  private look(): void {
    const now = performance.now()
    // When we were held up ourselves, an answer may have come and wait to be read: such time counts for little. But it
    // counts, or a process that is always late would never find out.
    const passed_ms = Math.min(now - this.looked_at, LOOK_EVERY_MS)
    this.looked_at = now
    if (this.asked_for_ms !== undefined) {
      this.asked_for_ms += passed_ms
      if (this.asked_for_ms >= this.silent_ms) this.fallSilent()
      return
    }
    const [oldest] = this.waiting
    if (this.isSilent || (oldest && now - oldest.since >= PATIENCE_MS)) void this.ask()
    else if (!oldest) this.drop()
  }

  private fallSilent(): void {
    this.isSilent = true
    this.asked_for_ms = undefined
    this.drop()
    for (const { reject } of this.waiting) reject(new Error(SILENCE))
  }

  private async ask(): Promise<void> {
    this.questions += 1
    const question = this.questions
    this.asked_for_ms = 0
    const isOpen = () => this.questions === question && this.asked_for_ms !== undefined
    try {
      if (!this.client) {
        const client = new pg.Client({ ...this.target, application_name: 'annals probe', keepAlive: true })
        client.on('error', () => {})
        this.client = client
        await client.connect()
      }
      await this.client.query('SELECT 1')
    } catch {
      // It refuses, or has closed the connection: then a statement hears the same, and need not be told.
      if (isOpen()) this.drop()
    }
    if (!isOpen()) return
    this.asked_for_ms = undefined
    this.isSilent = false
  }

  private drop(): void {
    const { client } = this
    this.client = undefined
    if (!client) return
    // What hangs would never take leave.
    if (this.isSilent || this.closed)
      (client as unknown as { connection: pg.Connection }).connection.stream.destroy()
    void client.end().catch(() => {})
  }
}

/** The error of a statement that was under way when the database fell silent. */
export const SILENCE = 'The database has fallen silent'
