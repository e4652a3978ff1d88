import type pg from 'pg'
import { DatabaseSilent } from './database_errors.js'
import { type ConnectionTarget, singleConnection } from './single_connection.js'

const LOOK_EVERY_MS = 100
/** After a statement has taken this long, we check whether the database still answers. */
const PATIENCE_MS = 200

/**
 * Distinguishes a silent database (it hangs, its machine is gone, a cable is pulled) from a slow statement: while a
 * statement takes long, it sends an empty query on a connection of its own.
 *
 *   beating ── no answer for `silent_ms` ──▶ silent ── an answer, even a refusal ──▶ beating
 *
 * Silence ends every statement in flight and refuses new ones at once. Without this, each would wait as long as the
 * longest list may take. While all statements are quick, nothing is asked and no connection is held.
 */
export class AvailabilityProbe {
  private readonly waiting = new Set<{ since: number; reject: (error: Error) => void }>()
  private readonly timer: NodeJS.Timeout
  private client: pg.Client | undefined
  /**
   * How long the current probe has waited, excluding time in which this process was held up; undefined without a
   * probe.
   */
  private asked_for_ms: number | undefined
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

  /** Whether the database is silent. */
  get silent(): boolean {
    return this.isSilent
  }

  /** A statement's result, or an error as soon as the database is silent. */
  orSilence<T>(statement: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const entry = { since: performance.now(), reject }
      this.waiting.add(entry)
      statement.then(
        (result) => {
          this.waiting.delete(entry)
          resolve(result)
        },
        (error) => {
          this.waiting.delete(entry)
          reject(error)
        },
      )
    })
  }

  async close(): Promise<void> {
    this.closed = true
    clearInterval(this.timer)
    this.drop()
  }

  private look(): void {
    const now = performance.now()
    // If this process was held up, an answer may have arrived and wait to be read, so such time counts for little.
    // But it counts, or a process that is always late would never notice.
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
    for (const { reject } of this.waiting) reject(new DatabaseSilent())
  }

  private async ask(): Promise<void> {
    this.questions += 1
    const question = this.questions
    this.asked_for_ms = 0
    const isOpen = () => this.questions === question && this.asked_for_ms !== undefined
    try {
      if (!this.client) {
        // It waits as long as it takes: that is what is measured.
        const options = { keepAlive: true, connectionTimeoutMillis: 0 }
        this.client = singleConnection(this.target, 'annals probe', options)
        await this.client.connect()
      }
      await this.client.query('SELECT 1')
    } catch {
      // It refused, or closed the connection: the statement gets the same error and need not be told.
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
    // A hanging connection would never close gracefully.
    if (this.isSilent || this.closed)
      (client as unknown as { connection: pg.Connection }).connection.stream.destroy()
    void client.end().catch(() => {})
  }
}
