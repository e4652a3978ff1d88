import type { MessageFormat } from '@annals/messages'

export type JsonObject = Record<string, unknown>

/** An entry as it is stored. Its id is made of the format and of what the source calls it. */
export type ImportedEntry = { id: string; occurred_at?: string; key?: string } & (
  | { kind: 'message'; format: MessageFormat; blob: JsonObject; meta?: JsonObject }
  | { kind: 'event'; type: string; data: JsonObject }
)

export interface SummaryMessage {
  format: MessageFormat
  blob: JsonObject
}

/** A session as its source describes it. */
export interface ImportedSession {
  id: string
  /** The session below which it stands; it comes first. */
  parent_id?: string | undefined
  user?: string | undefined
  configs: JsonObject
}

/** Where something stands in the source: a line of lines, or the line on which an item of a document begins. */
export interface Place {
  file: string
  line: number
}

/** What became of what was read of one format: `read` is the sum of the other three. */
export interface Tally {
  /** Lines, or items of documents. */
  read: number
  mapped: number
  /** Kept whole as events `source.<format>.<kind>`. */
  kept_raw: number
  refused: number
}

export type ImportRecord =
  | ({ kind: 'session' } & ImportedSession)
  /** The session that `of` was when it had the entry `at`, and then entries of its own. */
  | ({ kind: 'fork'; of: string; at: string } & ImportedSession)
  /** More of a session that came before. */
  | { kind: 'configs'; session_id: string; configs: JsonObject }
  /** `repeats`: an entry of the session that came before has its id. */
  | { kind: 'entry'; session_id: string; entry: ImportedEntry; place: Place; repeats?: true }
  /** Entries that came before and that their source has taken back. */
  | { kind: 'retraction'; session_id: string; ids: string[] }
  /** From the entry `at` on, the summary stands for all that came before, it included. */
  | { kind: 'compaction'; session_id: string; at: string; summary: SummaryMessage[]; place: Place }
  /** All of the session was read: nothing else of it follows. */
  | { kind: 'end'; session_id: string }
  /** How many pictures of files beside it became parts of messages. */
  | { kind: 'pictures'; read: number }
  /** The format that was found. */
  | { kind: 'format'; file: string; format: string }
  | { kind: 'refused'; place: Place; reason: string }
  | { kind: 'warning'; place: Place; reason: string }
  /** Now and then, and at the end: how far it was read, and what became of all that was read of the file. */
  | { kind: 'progress'; bytes: number; format: string; tally: Readonly<Tally> }
