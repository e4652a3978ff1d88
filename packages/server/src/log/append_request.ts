/** What an append stores for one entry, beside the JSON that passes through. */
export interface AppendedEntry {
  id: string
  /** The caller chose the id: an entry that is stored under it already is answered, not stored again. */
  id_given: boolean
  /** Length of the entry's JSON text, in bytes. */
  bytes: number
  /** Tokens of a message; 0 for an event. */
  tokens: number
  /** Role of a message, user or assistant; '' for an event. */
  role: string
}

/**
 * One request to append: a single event, a single message, or an atomic batch of both (`entries`).
 * `body` is the request's JSON text, already checked; PostgreSQL takes the members that it stores from it.
 */
export interface AppendRequest {
  project_id: string
  session_id: string
  kind: 'event' | 'message' | 'entries'
  body: string
  entries: readonly AppendedEntry[]
  /** Append only if the session's last seq is still this one. */
  if_match?: number | undefined
  idempotency?: IdempotencyKey | undefined
}

/** A caller's key and the digest of the request that it stands for. */
export interface IdempotencyKey {
  key: string
  request_hash: string
}

/** One stored entry as it is answered. `blob` is there when it was read back for a retry. */
export interface AppendAnswer {
  seq: number
  json: string
  kind?: string
  format?: string
  blob?: string
}

/** What became of a request: its entries in order. `replayed`: an earlier request with the key stored them. */
export interface AppendOutcome {
  entries: AppendAnswer[]
  replayed: boolean
}

/**
 * The connection was lost while a commit was under way and the database did not come back in time: the
 * request may or may not be stored. No status says that, so the caller's connection is closed unanswered, as
 * if the server had died, and a retry with an idempotency key settles it.
 */
export class AppendInDoubt extends Error {
  override readonly name = 'AppendInDoubt'
}
