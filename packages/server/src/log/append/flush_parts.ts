import type { AppendedEntry, AppendRequest, SessionAppend } from './append_request.js'

/** A request to be stored, and the seqs, by id, of those of its entries that are stored already. */
export interface OpenAppend {
  request: AppendRequest
  known: ReadonlyMap<string, number>
}

/** What an open append adds to one session: those of its entries from an index on. */
export interface OpenSessionAppend extends SessionAppend {
  one: OpenAppend
  from: number
}

/** The position of one entry: so many after its session's head, or the seq that it already has. */
export interface Place {
  entry: AppendedEntry
  session_id: string
  /** The index of its session in the flush, from 0. */
  session: number
  behind: number
  known_seq: number
  /** The previous message in the flush; null for an event, and for the first message, which follows the head's. */
  parent_id: string | null
  is_first_message: boolean
}

/** One session's part of a flush. */
export interface SessionPart {
  session_id: string
  if_match: number | null
  new_entries: number
  new_tokens: number
  new_bytes: number
  last_message_id: string | null
  has_messages: boolean
  /** Events without keys only. */
  is_plain: boolean
  /** Merged into its configs; null: nothing. */
  configs_patch: string | null
  appends: OpenSessionAppend[]
}

/** The entries of each request of a flush. */
export type PlacedAppends = ReadonlyMap<OpenAppend, Place[]>
