import type { Parameter } from '../../postgres/database.js'
import type {
  AppendAnswer,
  AppendedEntry,
  AppendRequest,
  PendingAppend,
  Retraction,
} from './append_request.js'

/** A request to be stored, and the seqs, by id, of those of its entries that are stored already. */
export interface OpenAppend {
  request: AppendRequest
  known: ReadonlyMap<string, number>
}

/** A request of a flush that still has to be stored. */
export interface Unsettled extends OpenAppend {
  pending: PendingAppend
}

export const NONE_KNOWN: ReadonlyMap<string, number> = new Map()

/** The position of one entry: so many after its session's head, or the seq that it already has. */
export interface Place {
  entry: AppendedEntry
  part: SessionPart
  behind: number
  known_seq: number
  /** The previous message in the flush; null for an event, and for the first message, which follows the head's. */
  parent_id: string | null
  is_first_message: boolean
  /**
   * Its answer may have to be repeated: a retry is answered from what is stored, and the first answer must be identical
   * byte for byte, so both are written from the stored text.
   */
  is_wanted: boolean
  /** What the flush gave back of it. */
  written: WrittenEntry | undefined
}

/** An entry as the database writes it, and of a retraction, the items that it retracted. */
export type WrittenEntry = Pick<AppendedEntry, 'data' | 'meta'> & Pick<AppendAnswer, 'items'>

/** One session's part of a flush. */
export interface SessionPart {
  session_id: string
  /** Its index in the flush, from 1, once all are known. */
  index: number
  /** The head's last seq; or, as a negative number, -1 - `unrevised_since`. */
  if_match: number | null
  /** The fence that was sent. */
  fence: number | null
  /** Inputs that become entries. */
  apply: readonly string[] | null
  new_entries: number
  new_tokens: number
  new_bytes: number
  last_message_id: string | null
  has_messages: boolean
  /** It only gets new events without keys and conditions, so that its head need not be known. */
  is_plain: boolean
  /** Merged into its configs; null: nothing. */
  configs_patch: string | null
  /** Its entries that the flush inserts. A retraction is inserted when it is carried out. */
  inserted: Place[]
  /** What the flush found, if there is such a session and its fence and inputs are as they should be. */
  head: FoundHead | undefined
  /** It stored nothing, because an atomic request was refused. */
  is_held_back: boolean
  /** That was so because its merged configs would be too large. */
  is_too_large: boolean
}

/** What a flush found for one session: its previous head, and the time of its entries. */
export interface FoundHead {
  last_seq: number
  /** Nothing was stored, because something was retracted or compacted meanwhile: see SessionAppend. */
  is_revised: boolean
  time: string
  last_message_id: string | null
  disable_task_tracking: boolean
}

/** Retractions of a session that are carried out together: see retract_entries.sql. */
export interface RetractionGroup {
  part: SessionPart
  behind: number
  /** The entry of each. */
  places: Place[]
  retraction: Retraction
  /** How many entries those before each take. */
  starts: number[]
}

/** What a flush sends to the database, and where the result finds its entries. */
export interface FlushPlan {
  project_id: string
  /** Of APPEND_ENTRIES. */
  parameters: Parameter[]
  /** Its sessions in the order of the parameters. */
  parts: SessionPart[]
  /** The entries of each request, in the order of the requests. */
  placed: Place[][]
  /** The entries that are returned as the database writes them, in the order of the parameters. */
  wanted: Place[]
  /** The retractions that are carried out, in the order of the answer's lines. */
  retractions: RetractionGroup[]
  /** The sessions that store nothing unless all of them do: those of atomic requests. */
  atomic: ReadonlySet<SessionPart>
  /** It finds no heads that take more to know, such as one with a chain. */
  is_plain: boolean
  /** Until when, by performance.now(), the plan may be sent: see AppendRequest. */
  valid_until: number
}
