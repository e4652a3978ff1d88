import type { AppendedEntry, AppendRequest } from './append_request.js'

/** A request to be stored, and the seqs, by id, of those of its entries that are stored already. */
export interface OpenAppend {
  request: AppendRequest
  known: ReadonlyMap<string, number>
}

/** The position of one entry: so many after its session's head, or the seq that it already has. */
export interface Place {
  entry: AppendedEntry
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
  requests: OpenAppend[]
}

/** The entries of each request of a flush. */
export type PlacedAppends = ReadonlyMap<OpenAppend, Place[]>
