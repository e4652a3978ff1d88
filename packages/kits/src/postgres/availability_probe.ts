import type pg from 'pg'
import { cancelRequest } from './cancel_statement.js'
import { DatabaseSilent } from './database_errors.js'
import { type ConnectionTarget, singleConnection } from './single_connection.js'

const LOOK_EVERY_MS = 100

/** A probe's question, asked once a statement, and the last answer, are `patience_ms` old. */
export interface Question {
  text: string
  patience_ms: number
}

const DOES_IT_ANSWER: Question = { text: 'SELECT 1', patience_ms: 200 }

/**
 * A commit that changes no table: a record of a few bytes in the log, for which PostgreSQL waits as for any other. A
 * role that may not call it gets a refusal, which counts as an answer.
 */
export const DOES_IT_COMMIT = { text: "SELECT pg_logical_emit_message(true, 'annals', '')" }

/**
 * Distinguishes a silent database (it hangs, its machine is gone, a cable is pulled) from a slow statement: while a
 * statement takes long, it asks a question on a connection of its own. A second probe, for writes, does the same for a
 * database that answers but completes no commit, because its disk hangs or its synchronous standby is away.
 *
 *   beating ── no answer for `silent_ms` ──▶ silent ── an answer, even a refusal ──▶ beating
 *
 * Silence ends every statement in flight and refuses new ones at once. Without this, each would wait as long as the
 * longest list may take, and a commit for as long as the standby is away. While all statements are quick, nothing is asked
 * and no connection is held.
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
  private answered_at = 0
  private isSilent = false
  private closed = false

  constructor(
    private readonly target: ConnectionTarget,
    private readonly silent_ms: number,
    private readonly question = DOES_IT_ANSWER,
    private readonly onSilence = () => {},
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
    const waited_ms = oldest ? now - Math.max(oldest.since, this.answered_at) : 0
    if (this.isSilent || waited_ms >= this.question.patience_ms) void this.ask()
    else if (!oldest) this.drop()
  }

  private fallSilent(): void {
    this.isSilent = true
    this.asked_for_ms = undefined
    this.drop()
    this.onSilence()
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
      await this.client.query(this.question.text)
    } catch {
      // It refused, or closed the connection: the statement gets the same error and need not be told.
      if (isOpen()) this.drop()
    }
    if (!isOpen()) return
    this.asked_for_ms = undefined
    this.answered_at = performance.now()
    this.isSilent = false
  }

  private drop(): void {
    const { client } = this
    this.client = undefined
    if (!client) return
    // A hanging connection would never close gracefully, and a server that waits for a standby does not notice that
    // nobody waits for it: each question would leave a connection behind.
    if (this.isSilent) cancelRequest(client)
    if (this.isSilent || this.closed)
      (client as unknown as { connection: pg.Connection }).connection.stream.destroy()
    void client.end().catch(() => {})
  }
}
