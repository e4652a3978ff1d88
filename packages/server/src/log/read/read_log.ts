import { AnnalsError, notFound } from '../../errors.js'
import type { Queryable, Row } from '../../postgres/database.js'
import { READ_HEAD } from '../../sessions/session_queries.js'
import { type EntryPage, type EntryView, readEntries } from './read_queries.js'

/** Most bytes of JSON that one statement returns, except for a single larger entry: what a reader holds at a time. */
export const PIECE_BYTES_MAX = 1024 * 1024
/** Most entries that one statement returns. */
const PIECE_ENTRIES_MAX = 1_000
/**
 * Most entries that one statement reads when a filter may reject any of them: 3 to 6 ms. So a filter that matches
 * nothing is read by many short statements, and others get the connection in between.
 */
const SCANNED_ENTRIES_MAX = 10_000

/** An entry as it is read: its seq, its JSON text, and the other columns of its view. */
export interface ReadEntry {
  seq: number
  json: string
  kind?: string
  id?: string
  parent_id?: string | null
  format?: string
  role?: string
  meta?: string
  tokens?: number
}

/**
 * The seq of a session's newest entry, 0 if it has none, for a reader that has read up to `seen_seq`.
 * @throws AnnalsError session_not_found; seq_ahead if the reader is ahead of the log. A log never gets shorter, so
 * this is another log, for example from a backup, and its entries may differ from those that the reader has seen
 */
export async function readLastSeq(
  database: Queryable,
  project_id: string,
  session_id: string,
  seen_seq = 0,
): Promise<number> {
  const [row] = await database.query(READ_HEAD, [project_id, session_id])
  if (!row) throw notFound('session')
  const last_seq = Number(row.last_seq)
  if (seen_seq <= last_seq) return last_seq
  throw new AnnalsError(
    'seq_ahead',
    `Seq ${seen_seq} is beyond the session's last seq ${last_seq}: the entries read before are gone, for example after a restore. Read the log again from its beginning.`,
  )
}

/**
 * The entries of a page in order of seq, in pieces of bounded size. Entries never move and are numbered without gaps,
 * so consecutive pieces fit together without a snapshot. Reading stops early, between two statements, when the caller
 * has gone.
 */
export async function* readLog(
  database: Queryable,
  page: EntryPage,
  view: EntryView,
  isWanted: () => boolean = () => true,
): AsyncGenerator<ReadEntry[]> {
  let rest = page
  while (rest.limit > 0 && rest.above_seq + 1 < rest.below_seq && isWanted()) {
    const slice = { ...rest, ...scannedAtOnce(rest), limit: Math.min(rest.limit, PIECE_ENTRIES_MAX) }
    const { statement, parameters } = readEntries(slice, view, PIECE_BYTES_MAX)
    const rows = await database.query(statement, parameters)
    if (rows.length > 0) yield rows.map((row) => toEntry(row, view))
    // A piece also ends at its byte limit, so the same slice may have more entries.
    const { seq = page.time_desc ? slice.above_seq + 1 : slice.below_seq - 1 } = rows.at(-1) ?? {}
    const next = page.time_desc ? { below_seq: Number(seq) } : { above_seq: Number(seq) }
    rest = { ...rest, ...next, limit: rest.limit - rows.length }
  }
}

/** The range of seqs that one statement reads. Messages have their own index and need no slices. */
function scannedAtOnce(page: EntryPage): Pick<EntryPage, 'above_seq' | 'below_seq'> {
  const { above_seq, below_seq, kind, type, time_desc } = page
  if (kind === 'message' && type === undefined) return { above_seq, below_seq }
  return time_desc
    ? { above_seq: Math.max(above_seq, below_seq - 1 - SCANNED_ENTRIES_MAX), below_seq }
    : { above_seq, below_seq: Math.min(below_seq, above_seq + 1 + SCANNED_ENTRIES_MAX) }
}

function toEntry(row: Row, view: EntryView): ReadEntry {
  return {
    seq: Number(row.seq),
    json: row.json!,
    ...(view === 'item' && { kind: row.kind! }),
    ...(view === 'message' && {
      id: row.id!,
      parent_id: row.parent_id!,
      format: row.format!,
      role: row.role!,
      meta: row.meta!,
      tokens: Number(row.tokens),
    }),
  }
}
