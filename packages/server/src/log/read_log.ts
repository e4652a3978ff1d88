import type { Queryable } from '../database/database.js'
import { type EntryPage, type EntryView, readEntries } from '../database/queries/read_entries.js'
import { READ_HEAD } from '../database/queries/sessions.js'
import { notFound } from '../errors.js'

/** Bytes of JSON that one statement reads at most, a larger entry aside: what a reader holds at a time. */
const PIECE_BYTES_MAX = 1024 * 1024
/** Entries that one statement reads at most. */
const PIECE_ENTRIES_MAX = 1_000

/** An entry as it is read: its number, its JSON text, and what other columns its view has. */
export interface ReadEntry {
  seq: number
  json: string
  kind?: string
  id?: string
  parent_id?: string | null
  format?: string
  meta?: string
  tokens?: number
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
  let rest: EntryPage = page
  while (rest.limit > 0) {
    const asked = Math.min(rest.limit, PIECE_ENTRIES_MAX)
    const { statement, parameters } = readEntries({ ...rest, limit: asked }, view, PIECE_BYTES_MAX)
    const rows = await database.query(statement, parameters)
    const last = rows.at(-1)
    if (!last) return
    yield rows.map((row) => ({
      seq: Number(row.seq),
      json: row.json!,
      ...(view === 'item' && { kind: row.kind! }),
      ...(view === 'message' && {
        id: row.id!,
        parent_id: row.parent_id!,
        format: row.format!,
        meta: row.meta!,
        tokens: Number(row.tokens),
      }),
    }))
    const seq = Number(last.seq)
    rest = {
      ...rest,
      limit: rest.limit - rows.length,
      ...(page.time_desc ? { below_seq: seq } : { above_seq: seq }),
    }
  }
}
