import { StartError } from '@annals/kits/errors.js'
import type { Row, Tenant } from '@annals/kits/postgres/database.js'
import type { ExportPiece } from '../transfer/export_line.js'
import { EXPORT_ENTRIES, EXPORT_ERASED } from './export_session_queries.js'

/** Most entries that one statement reads. */
const PIECE_ENTRIES_MAX = 2_000
/** Most bytes of JSON that one statement reads (plus one entry): what an export holds in memory. */
const PIECE_BYTES_MAX = 4 * 1024 * 1024

/** A session whose head was read: its log is exported up to `last_seq`, whatever is appended in the meantime. */
interface SessionToExport {
  id: string
  line: string
  last_seq: number
}

interface Reading {
  session: SessionToExport
  behind: number
}

interface Range {
  reading: Reading
  behind: number
  until: number
}

/**
 * The lines of a page of sessions, each followed by its entries in order, in pieces of bounded size: small sessions share a
 * statement, large ones take several.
 * @throws StartError for a log that is not as its head says: half a log would look like a whole one
 */
export async function* exportSessions(
  { database, project_id }: Tenant,
  sessions: Row[],
): AsyncGenerator<ExportPiece> {
  let open: Reading[] = sessions.map(({ id, line, last_seq }) => ({
    session: { id: id!, line: line!, last_seq: Number(last_seq) },
    behind: 0,
  }))
  while (open.length > 0) {
    const ranges = cutRanges(open)
    const rows = await database.query(EXPORT_ENTRIES, [
      project_id,
      ranges.map(({ reading }) => reading.session.id),
      ranges.map(({ behind }) => behind),
      ranges.map(({ until }) => until),
      ranges.map(({ reading }) => reading.session.last_seq),
      PIECE_BYTES_MAX,
    ])
    const { piece, finished } = takeRows(ranges, rows)
    if (piece.lines.length > 0) yield piece
    open = open.slice(finished)
  }
}

/** Assigns rows to their sessions; `finished` counts the complete ones at the front. */
function takeRows(ranges: Range[], rows: Row[]): { piece: ExportPiece; finished: number } {
  const counts = { sessions: 0, entries: rows.length }
  const piece: ExportPiece = { lines: [], counts }
  let at = 0
  for (const [index, { reading, until }] of ranges.entries()) {
    const { session, behind } = reading
    const from = at
    while (at < rows.length && Number(rows[at]!.ord) === index + 1) at += 1
    const own = rows.slice(from, at)
    if (behind === 0 && (own.length > 0 || session.last_seq === 0)) {
      piece.lines.push(session.line)
      counts.sessions += 1
    }
    for (const row of own) piece.lines.push(row.line!)
    reading.behind += own.length
    if (own.length > 0 && Number(own.at(-1)!.seq) !== reading.behind) {
      throw damaged(session.id, `its log has a gap before seq ${own.at(-1)!.seq}`)
    }
    // The first range always returns something, and so does each before one that returned something.
    const isShort = reading.behind < until && (at < rows.length || rows.length === 0)
    if (isShort)
      throw damaged(
        session.id,
        `its log ends at seq ${reading.behind}, and its head says ${session.last_seq}`,
      )
    if (reading.behind < session.last_seq) return { piece, finished: index }
  }
  return { piece, finished: ranges.length }
}

/** The ranges of the next statement: the logs of as many sessions as it may read entries of. */
function cutRanges(open: Reading[]): Range[] {
  const ranges: Range[] = []
  let room = PIECE_ENTRIES_MAX
  for (const reading of open) {
    const { behind } = reading
    const until = Math.min(reading.session.last_seq, behind + room)
    if (until === behind && reading.session.last_seq > behind) break
    ranges.push({ reading, behind, until })
    room -= until - behind
  }
  return ranges
}

function damaged(session_id: string, how: string): StartError {
  return new StartError(
    `Session ${session_id} cannot be exported: ${how}. \`annals verify\` explains what to do.`,
  )
}

const ERASED_AT_ONCE_MAX = 1_000

/** Which sessions are being deleted, so that an import completes that: what is below them is written as it is still there. */
export async function* exportErased(
  { database, project_id }: Tenant,
  { user, session_id }: { user?: string | undefined; session_id?: string | undefined },
): AsyncGenerator<ExportPiece> {
  if (session_id !== undefined) return
  let after: string | null = null
  for (let found = ERASED_AT_ONCE_MAX; found === ERASED_AT_ONCE_MAX; ) {
    const rows: Row[] = await database.query(EXPORT_ERASED, [
      project_id,
      user ?? null,
      after,
      ERASED_AT_ONCE_MAX,
    ])
    if (rows.length > 0) yield { lines: rows.map(({ line }) => line!), counts: {} }
    after = rows.at(-1)?.session_id ?? null
    found = rows.length
  }
}
