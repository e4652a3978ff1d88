import type { Database, Row } from '../../postgres/database.js'
import type { Statement } from '../../postgres/statement.js'
import type { CheckName } from './verify_check_queries.js'
import { COUNT_USERS, NEXT_SESSIONS, VERIFY_KEYS, VERIFY_SESSIONS, VERIFY_SPACES } from './verify_queries.js'

/**
 * Limits of a piece: what one statement reads, how long its snapshot lasts, and how often progress is reported. A
 * session with more entries is a piece by itself.
 */
const ENTRIES_AT_ONCE = 10_000
const SESSIONS_AT_ONCE = 1_000
const ROWS_AT_ONCE = 1_000

/** A project's content, counted row by row. */
export interface ProjectCounts {
  users: number
  sessions: number
  entries: number
  messages: number
  events: number
  tokens: number
  bytes: number
  learning_spaces: number
  idempotency_keys: number
}

/** The same while counting; `rows` are the rows of all tables read so far. */
export interface ProjectProgress extends ProjectCounts {
  rows: number
}

/** A problem. */
export interface Finding {
  check: CheckName
  session_id: string | null
  place: string
  detail: string
}

/** The problems in one piece: a few of each check, and how many there are. */
export interface PieceFindings {
  shown: Finding[]
  found: Map<CheckName, number>
}

/** Called for each piece, with the counts so far. */
export type OnPiece = (counts: ProjectProgress, findings: PieceFindings) => void

/**
 * Reads a whole project, a bounded piece at a time, and reports the problems in each. Every statement names the
 * project, so on a cluster it runs where the project is.
 */
export async function verifyProject(
  database: Database,
  project_id: string,
  onPiece: OnPiece,
): Promise<ProjectCounts> {
  let rows = 0
  const counts = {
    users: 0,
    sessions: 0,
    entries: 0,
    messages: 0,
    events: 0,
    tokens: 0,
    bytes: 0,
    learning_spaces: 0,
    idempotency_keys: 0,
  }
  const [row] = await database.query(COUNT_USERS, [project_id])
  counts.users = Number(row!.users)
  const take = ({ counted, findings }: Piece) => {
    rows += Number(counted.rows)
    onPiece({ ...counts, rows }, findings)
  }
  for await (const piece of sessionPieces(database, project_id)) {
    for (const name of ['sessions', 'entries', 'messages', 'tokens', 'bytes'] as const)
      counts[name] += Number(piece.counted[name])
    counts.events = counts.entries - counts.messages
    take(piece)
  }
  for await (const piece of rowPieces(database, VERIFY_SPACES, project_id, null)) {
    counts.learning_spaces += Number(piece.counted.count)
    take(piece)
  }
  for await (const piece of rowPieces(database, VERIFY_KEYS, project_id, '')) {
    counts.idempotency_keys += Number(piece.counted.count)
    take(piece)
  }
  return counts
}

interface Piece {
  counted: Record<string, string | number | null>
  findings: PieceFindings
}

async function* sessionPieces(database: Database, project_id: string): AsyncGenerator<Piece> {
  let after: string | null = null
  do {
    const bounds = [project_id, after, ENTRIES_AT_ONCE, SESSIONS_AT_ONCE]
    const [next] = await database.query(NEXT_SESSIONS, bounds)
    const last: string | null = next!.last_id!
    yield readPiece(await database.query(VERIFY_SESSIONS, [project_id, after, last]))
    after = last
  } while (after !== null)
}

async function* rowPieces(
  database: Database,
  statement: Statement,
  project_id: string,
  before: string | null,
): AsyncGenerator<Piece> {
  for (let after = before; ; ) {
    const piece = readPiece(await database.query(statement, [project_id, after, ROWS_AT_ONCE]))
    yield piece
    if (Number(piece.counted.count) < ROWS_AT_ONCE) return
    after = String(piece.counted.last)
  }
}

function readPiece(rows: Row[]): Piece {
  const piece: Piece = { counted: {}, findings: { shown: [], found: new Map() } }
  for (const row of rows) {
    if (row.check === 'counts') {
      piece.counted = JSON.parse(row.detail!) as Piece['counted']
      continue
    }
    const check = row.check as CheckName
    piece.findings.found.set(check, Number(row.found))
    piece.findings.shown.push({
      check,
      session_id: row.session_id!,
      place: row.place!,
      detail: row.detail!,
    })
  }
  return piece
}
