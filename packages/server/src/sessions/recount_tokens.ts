import { READ_CHANGED_ENTRIES } from '@annals/kits/changes/change_queries.js'
import { type PassPlace, passStatements, passThroughProjects } from '@annals/kits/changes/project_pass.js'
import type { Background, Loop } from '@annals/kits/lifecycle/background.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { call, storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import type { MediaFacts, MessageFormat } from '@annals/messages'

/** Limits of one read: sessions, entries of one of them, and bytes. */
const PIECE = { sessions: 100, entries: 500, bytes: 512 * 1024 }

export interface RecountedMessage {
  id: string
  format: MessageFormat
  data: string
}

export interface TokenRecountOptions extends Background {
  /** It takes the work elsewhere: messages are of any size. */
  tokensOf(project_id: string, messages: RecountedMessage[], facts: Facts): Promise<number[]>
  /** Facts read from the bytes of blobs, by their hashes. */
  factsOf(project_id: string, hashes: readonly string[]): Promise<Facts>
}

type Facts = Array<[sha256: string, facts: MediaFacts]>

/** Recounts the tokens of messages that were stored before all that is sent was counted. */
export class TokenRecount {
  private readonly loop: Loop

  constructor(private readonly options: TokenRecountOptions) {
    this.loop = passThroughProjects(
      options,
      RECOUNT_PASS,
      'tokens will be recounted later',
      (project_id, place) => this.recountPiece(project_id, place),
    )
  }

  ended(): Promise<void> {
    return this.loop.ended()
  }

  /** Recounts what follows a place, and returns up to where; undefined if nothing does. */
  private async recountPiece(project_id: string, place: PassPlace): Promise<PassPlace | undefined> {
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

/** Recounting the tokens of what was stored before all that is sent was counted: see migrations/0031_token_recounts.sql. */

/** A copy that is being written has entries but no head yet: it is waited for. */
export const RECOUNT_PASS = passStatements({
  table: 'token_recounts',
  name: 'recount',
  ends: 'NOT EXISTS (SELECT FROM erased_sessions x WHERE x.project_id = $1 AND x.leased_until IS NOT NULL)',
})

/** The next sessions. Parameters: $1 project, $2 the session to begin with, $3 how many. Rows: session_id, last_seq. */
export const NEXT_SESSIONS_TO_RECOUNT = prepared(
  'next_sessions_to_recount',
  `SELECT h.session_id, h.last_seq FROM session_heads h
WHERE h.project_id = $1 AND h.session_id >= $2 ORDER BY h.session_id LIMIT $3`,
)

export const RECOUNT_TOKENS = storedFunctionIn('sessions/recount_tokens.sql')
