import type { SearchedEntry } from '@annals/messages/search'
import type { Queryable } from '../postgres/database.js'
import type { Statement } from '../postgres/statement.js'

/** An entry as a consumer reads it. `data` and `meta` are JSON as text. */
export interface ChangedEntry {
  seq: number
  id: string
  kind: 'event' | 'message'
  type: string | null
  role: string | null
  format: string | null
  created_at: string
  occurred_at: string | null
  data: string
  meta: string | null
}

export interface ChangedSession {
  session_id: string
  /** Up to where the consumer has read; 0 for one that reads no entries. */
  after_seq: number
  /** The last of `entries`; the head's for a consumer that reads none. */
  last_seq: number
  /** Of the head, as PostgreSQL writes it. */
  updated_at: string
  /** In the order of seq, right after `after_seq`; a bounded piece, after which the rest follows. */
  entries: ChangedEntry[]
}

export interface ChangedSessions {
  project_id: string
  sessions: ChangedSession[]
  gone: string[]
  signal: AbortSignal
}

/**
 * Somebody who has to look at every session that changes, in the background, in each project that it is switched on for
 * (`projects.consumers`). What it is given was committed, comes at least once, and within a session in the order of seq.
 */
export interface Consumer {
  readonly name: string
  /** Sessions that it is given at once; one at a time after a failure, so that it holds up no other. */
  readonly sessions_max: number
  /** Whether it is given entries, with a cursor of its own in each session. */
  readonly readsEntries: boolean
  /** Entries that it is given at once, if these are fewer than others take. */
  readonly entries_max?: number
  /**
   * It asks somebody outside, who may take long: its rounds take no places of those that ask nobody. Returns for how long
   * none is to begin, because nobody would answer.
   */
  readonly restMs?: () => number
  /** SQL: whether a session with head `h`, in project $1, has something that it has not seen; by default by its cursor. */
  readonly isBehind?: string
  /**
   * Does its work, however long it takes, outside of any transaction. What it returns writes its rows in the
   * transaction that moves the cursor: these are written exactly once, and only while nobody else has taken the session.
   * May throw: the sessions are given again, after a growing pause; after `Unanswered`, as if they had never been given.
   * It may leave entries at the end of a session for later: it takes them out, and sets `last_seq` to the last one left.
   */
  consume(work: ChangedSessions): Promise<Write | undefined>
  /** Delete some of its rows of a project, where nobody wants them any more. Parameters: $1 project, $2 how many. Rows: one each. */
  readonly erase: readonly Statement[]
  /**
   * Delete its rows of sessions that are gone: it may have written some while the session was being deleted. Parameters:
   * $1 project, $2 sessions.
   */
  readonly forget?: readonly Statement[]
}

/** Nobody answers a consumer that asks somebody: which is not for the sessions to be blamed for. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered'
}

/** Writes in the transaction that ends a piece of work. Returns the sessions that it has not read to their heads, if any. */
export type Write = (connection: Queryable) => Promise<readonly string[] | undefined> | Promise<void>

/** Returns the words of a project's entries, each once, with spaces between them. It may take the work elsewhere: entries are of any size. */
export type WordsOf = (project_id: string, entries: SearchedEntry[]) => Promise<string[]>

/** Leaves what comes after the first entries of the sessions, so many in all, for later. */
export function leaveForLater(sessions: readonly ChangedSession[], first: number): void {
  let left = first
  for (const session of sessions) {
    if (session.entries.length > left) {
      session.entries.length = left
      session.last_seq = session.entries.at(-1)?.seq ?? session.after_seq
    }
    left -= session.entries.length
  }
}
