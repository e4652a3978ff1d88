import { setTimeout as sleep } from 'node:timers/promises'
import type { MediaFacts, MessageFormat } from '@annals/messages'
import type { Logger } from 'pino'
import { READ_CHANGED_ENTRIES } from '../changes/change_queries.js'
import { each, insist, pausesForRequests, repeat } from '../changes/repeat.js'
import type { Database } from '../postgres/database.js'
import { describeError } from '../postgres/database_errors.js'
import { call } from '../postgres/stored_function.js'
import { FIND_RECOUNTS, NEXT_SESSIONS_TO_RECOUNT, RECOUNT, RECOUNT_TOKENS } from './recount_queries.js'

const POLL_MS = 10_000
const LEASE_S = 60
/** What is read at once: sessions, entries of one of them, and bytes. */
const PIECE = { sessions: 100, entries: 500, bytes: 512 * 1024 }

/** A stored message whose tokens are counted anew. */
export interface RecountedMessage {
  id: string
  format: MessageFormat
  data: string
}

export interface TokenRecountOptions {
  database: Database
  /** Ends everything; what is under way is done again by whoever comes next. */
  signal: AbortSignal
  logger: Logger
  /** It takes the work elsewhere: messages are of any size. */
  tokensOf(project_id: string, messages: RecountedMessage[], facts: Facts): Promise<number[]>
  /** What the bytes of blobs, by their hashes, say. */
  factsOf(project_id: string, hashes: readonly string[]): Promise<Facts>
  poll_ms?: number
}

type Facts = Array<[sha256: string, facts: MediaFacts]>

interface Place {
  session_id: string
  seq: number
}

/**
 * Recounts the tokens of messages that were stored before all that is sent was counted, at each node.
 *
 *   the poll ──▶ a project that has some ──▶ this node takes its lease ──▶ a piece of its sessions is read, counted and
 *   written, and the place is moved behind it ──▶ … ──▶ the project's row is deleted
 *
 * A lease ends by the database's clock, so a node that was killed leaves its work to others. Writing a piece twice changes
 * nothing.
 */
export class TokenRecount {
  private readonly polling: Promise<void>
  private readonly pauseAfter = pausesForRequests()

  constructor(private readonly options: TokenRecountOptions) {
    const { signal, logger, poll_ms = POLL_MS } = options
    this.polling = repeat(
      () => this.look(),
      poll_ms,
      signal,
      (error) => logger.warn({ err: describeError(error) }, 'tokens will be recounted later'),
    )
  }

  /** Resolves when nothing is under way any more, which `signal` brings about. */
  ended(): Promise<void> {
    return this.polling
  }

  private async look(): Promise<void> {
    const { database, signal } = this.options
    const projects = await database.query(FIND_RECOUNTS, [])
    await each(projects, signal, ({ project_id }) => this.recountProject(project_id!))
  }

  private async recountProject(project_id: string): Promise<void> {
    const { database, signal } = this.options
    const [taken] = await database.query(RECOUNT.take, [project_id, LEASE_S])
    if (!taken) return
    let leased_until = taken.leased_until!
    let place: Place | undefined = { session_id: taken.session_id!, seq: Number(taken.seq) }
    try {
      while (!signal.aborted) {
        const began = performance.now()
        place = await this.recountPiece(project_id, place)
        if (!place) {
          await database.query(RECOUNT.finish, [project_id, leased_until])
          return
        }
        const moved = [project_id, leased_until, place.session_id, place.seq, LEASE_S]
        const [kept] = await database.query(RECOUNT.advance, moved)
        if (!kept) return
        leased_until = kept.leased_until!
        await pause(this.pauseAfter(performance.now() - began), signal)
      }
    } finally {
      await insist(() => database.query(RECOUNT.leave, [project_id, leased_until]), LEASE_S * 1_000, signal)
    }
  }

  /** Recounts what follows a place, and gives up to where; undefined if nothing does. */
  private async recountPiece(project_id: string, place: Place): Promise<Place | undefined> {
    const { database } = this.options
    const heads = await database.query(NEXT_SESSIONS_TO_RECOUNT, [
      project_id,
      place.session_id,
      PIECE.sessions,
    ])
    const pieces: Array<{ session_id: string; after_seq: number; to_seq: number }> = []
    let room = PIECE.entries
    for (const { session_id, last_seq } of heads) {
      if (room <= 0) break
      const after_seq = session_id === place.session_id ? place.seq : 0
      const to_seq = Math.min(Number(last_seq), after_seq + room)
      pieces.push({ session_id: session_id!, after_seq, to_seq })
      room -= to_seq - after_seq
    }
    const last = pieces.at(-1)
    const isDone =
      heads.length < PIECE.sessions && pieces.every(({ after_seq, to_seq }) => after_seq >= to_seq)
    if (!last || isDone) return undefined
    const read = await database.query(READ_CHANGED_ENTRIES, [
      project_id,
      pieces.map(({ session_id }) => session_id),
      pieces.map(({ after_seq }) => after_seq),
      pieces.map(({ to_seq }) => to_seq),
      PIECE.bytes,
    ])
    const rows = read.map((row) => ({
      ...(row as unknown as StoredRow),
      session_id: pieces[Number(row.place) - 1]!.session_id,
    }))
    await this.recount(project_id, rows)
    // A piece that was cut by its bytes ends with its last entry.
    const end = rows.at(-1)
    const expected = pieces.reduce((sum, { after_seq, to_seq }) => sum + Math.max(0, to_seq - after_seq), 0)
    return end && rows.length < expected
      ? { session_id: end.session_id, seq: Number(end.seq) }
      : { session_id: last.session_id, seq: last.to_seq }
  }

  private async recount(project_id: string, rows: StoredRow[]): Promise<void> {
    const { database, tokensOf, factsOf } = this.options
    const messages = rows.filter(({ kind }) => kind === 'message')
    if (messages.length === 0) return
    const hashes = messages.flatMap(({ data }) => [...data.matchAll(REFERENCE)].map(([, sha256]) => sha256!))
    const facts = hashes.length === 0 ? [] : await factsOf(project_id, [...new Set(hashes)])
    const stored = messages.map(({ id, format, data }) => ({ id, format, data }))
    const tokens = await tokensOf(project_id, stored, facts)
    const sessions = new Map<string, { seqs: number[]; tokens: number[] }>()
    for (const [index, { session_id, seq }] of messages.entries()) {
      const counted = sessions.get(session_id) ?? { seqs: [], tokens: [] }
      counted.seqs.push(Number(seq))
      counted.tokens.push(tokens[index]!)
      sessions.set(session_id, counted)
    }
    for (const [session_id, counted] of sessions)
      await call(database, RECOUNT_TOKENS, project_id, session_id, counted.seqs, counted.tokens)
  }
}

/** As PostgreSQL writes it. */
const REFERENCE = /"annals_blob": "([0-9a-f]{64})"/g

interface StoredRow extends RecountedMessage {
  session_id: string
  seq: string
  kind: string
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)
}
