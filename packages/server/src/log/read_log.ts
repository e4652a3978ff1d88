import type { Queryable } from '../database/database.js'
import { type EntryPage, type EntryView, readEntries } from '../database/queries/entries.js'
import { READ_HEAD } from '../database/queries/sessions.js'
import { notFound } from '../errors.js'

/** Bytes of JSON that one statement reads at most (one entry more): what a reader holds at a time. */
const PIECE_BYTES_MAX = 4 * 1024 * 1024

/** An entry as it is read: its number and its JSON text. */
export interface ReadEntry {
  seq: number
  json: string
}

/** The seq of a session's newest entry, 0 when it has none. @throws AnnalsError session_not_found */
export async function readLastSeq(
  database: Queryable,
  project_id: string,
  session_id: string,
): Promise<number> {
  const [row] = await database.query(READ_HEAD, [project_id, session_id])
  if (!row) throw notFound('session')
  return Number(row.last_seq)
}

/**
 * The entries of a page in order of seq, in pieces of bounded size. Entries never change place and a session's
 * are numbered without gaps, so pieces read one after the other fit together without a snapshot.
 */
export async function* readLog(
  database: Queryable,
  page: EntryPage,
  view: EntryView,
): AsyncGenerator<ReadEntry[]> {
  let { after_seq, limit } = page
  while (limit > 0) {
    const { statement, parameters } = readEntries({ ...page, after_seq, limit }, view, PIECE_BYTES_MAX)
    const rows = await database.query(statement, parameters)
    const last = rows.at(-1)
    if (!last) return
    yield rows.map((row) => ({ seq: Number(row.seq), json: row.json! }))
    after_seq = Number(last.seq)
    limit -= rows.length
  }
}
