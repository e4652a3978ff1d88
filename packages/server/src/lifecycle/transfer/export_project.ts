import { createHash } from 'node:crypto'
import { notFound } from '../../errors.js'
import { parseId } from '../../ids.js'
import type { Queryable, Row } from '../../postgres/database.js'
import { FIND_USER } from '../../users/user_queries.js'
import { VERSION } from '../../version.js'
import { type ExportHeader, FORMAT_VERSION } from './export_format.js'
import type { ExportOutput } from './export_output.js'
import { type ExportPiece, exportSessions, type SessionToExport } from './export_pieces.js'
import {
  EXPORT_SESSION,
  exportOwned,
  exportUsers,
  MEASURE_EXPORT,
  type OwnedPosition,
} from './export_queries.js'

const USERS_AT_ONCE_MAX = 500
/** Sessions or learning spaces per page: each may have some 100 KB of configs or meta. */
const OWNED_AT_ONCE_MAX = 100

/** What to export: a whole project, one of its users with all data, or one session. */
export interface ExportScope {
  project: { id: string; name: string }
  user?: string | undefined
  session_id?: string | undefined
}

export interface ExportCounts {
  users: number
  learning_spaces: number
  sessions: number
  entries: number
  lines: number
  bytes: number
}

export interface ExportOptions {
  schema_version: number
  exported_at: string
  signal: AbortSignal
  /** Called after each piece with what was written so far. */
  onProgress: (counts: Readonly<ExportCounts>) => void
}

/**
 * The approximate number of entries of an export: its project is in use.
 * @throws AnnalsError user_not_found, session_not_found
 */
export async function measureExport(database: Queryable, scope: ExportScope): Promise<number> {
  const { project, user } = scope
  if (scope.session_id !== undefined) return (await findSession(database, scope)).session.last_seq
  if (user === undefined)
    return Number((await database.query(MEASURE_EXPORT.project, [project.id]))[0]!.entries)
  const [found] = await database.query(FIND_USER, [project.id, user])
  if (!found) throw notFound('user')
  return Number((await database.query(MEASURE_EXPORT.user, [project.id, found.id!]))[0]!.entries)
}

/**
 * Writes an export, from its header to the line with the checksum.
 *
 * It is not one transaction, which would keep PostgreSQL from cleaning up all that time. The guarantee is that of a
 * log: each session as it was at one of its seqs, complete up to there.
 */
export async function writeExport(
  database: Queryable,
  scope: ExportScope,
  output: ExportOutput,
  options: ExportOptions,
): Promise<ExportCounts> {
  const counts = { users: 0, learning_spaces: 0, sessions: 0, entries: 0, lines: 0, bytes: 0 }
  const hash = createHash('sha256')
  const write = async (lines: string[]) => {
    options.signal.throwIfAborted()
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    hash.update(bytes)
    await output.write(bytes)
    counts.lines += lines.length
    counts.bytes += bytes.length
    options.onProgress(counts)
  }
  await write([JSON.stringify(headerOf(scope, options))])
  for await (const piece of walk(database, scope)) {
    for (const name of ['users', 'learning_spaces', 'sessions', 'entries'] as const)
      counts[name] += piece[name] ?? 0
    await write(piece.lines)
  }
  const sha256 = hash.copy().digest('hex')
  await write([JSON.stringify({ kind: 'end', lines: counts.lines, sha256 })])
  return counts
}

function headerOf(scope: ExportScope, { exported_at, schema_version }: ExportOptions): ExportHeader {
  const { project, user, session_id } = scope
  return {
    annals_export: FORMAT_VERSION,
    what: session_id !== undefined ? 'session' : user !== undefined ? 'user' : 'project',
    project_id: project.id,
    project: project.name,
    ...(user !== undefined && { user }),
    ...(session_id !== undefined && { session_id }),
    exported_at,
    annals_version: VERSION,
    schema_version,
  }
}

type Piece = { lines: string[] } & Partial<ExportPiece> & { users?: number; learning_spaces?: number }

/** Every line between header and end, each after what it refers to. */
async function* walk(database: Queryable, scope: ExportScope): AsyncGenerator<Piece> {
  const project_id = scope.project.id
  if (scope.session_id !== undefined) {
    const { user, session } = await findSession(database, scope)
    if (user !== null) yield* usersOnly(database, project_id, user)
    yield* exportSessions(database, project_id, [session])
    return
  }
  for await (const users of userPages(database, project_id, scope.user)) {
    yield { lines: users.map((row) => row.line!), users: users.length }
    yield* owned(database, project_id, users)
  }
  if (scope.user === undefined) yield* owned(database, project_id, undefined)
}

async function findSession(
  database: Queryable,
  { project, session_id }: ExportScope,
): Promise<{ user: string | null; session: SessionToExport }> {
  const id = parseId(session_id!)
  const [row] = id === undefined ? [] : await database.query(EXPORT_SESSION, [project.id, id])
  if (!row) throw notFound('session')
  return { user: row.user!, session: toExport(row) }
}

async function* usersOnly(
  database: Queryable,
  project_id: string,
  identifier: string,
): AsyncGenerator<Piece> {
  for await (const users of userPages(database, project_id, identifier)) {
    yield { lines: users.map((row) => row.line!), users: users.length }
  }
}

/** Users by id, so that what they own is in one range of an index. */
async function* userPages(
  database: Queryable,
  project_id: string,
  identifier: string | undefined,
): AsyncGenerator<Row[]> {
  let after: string | undefined
  for (;;) {
    const { statement, parameters } = exportUsers({ project_id, identifier, after, limit: USERS_AT_ONCE_MAX })
    const users = await database.query(statement, parameters)
    if (users.length > 0) yield users
    if (users.length < USERS_AT_ONCE_MAX) return
    after = users.at(-1)!.id!
  }
}

/** What a page of users owns, or what has no user: learning spaces, then sessions with their entries. */
async function* owned(
  database: Queryable,
  project_id: string,
  users: Row[] | undefined,
): AsyncGenerator<Piece> {
  for await (const spaces of ownedPages(database, 'learning_spaces', project_id, users)) {
    yield { lines: spaces.map((row) => row.line!), learning_spaces: spaces.length }
  }
  for await (const sessions of ownedPages(database, 'sessions', project_id, users)) {
    yield* exportSessions(database, project_id, sessions.map(toExport))
  }
}

async function* ownedPages(
  database: Queryable,
  table: 'learning_spaces' | 'sessions',
  project_id: string,
  users: Row[] | undefined,
): AsyncGenerator<Row[]> {
  const range = users && { first: users[0]!.id!, last: users.at(-1)!.id! }
  // A user created since the page of users was read may be in its range, and has no line.
  const exported = users && new Set<string | null>(users.map((row) => row.id!))
  let after: OwnedPosition | undefined
  for (;;) {
    const { statement, parameters } = exportOwned(table, {
      project_id,
      range,
      after,
      limit: OWNED_AT_ONCE_MAX,
    })
    const rows = await database.query(statement, parameters)
    const page = exported ? rows.filter((row) => exported.has(row.user_id!)) : rows
    if (page.length > 0) yield page
    if (rows.length < OWNED_AT_ONCE_MAX) return
    const last = rows.at(-1)!
    after = { user_id: last.user_id!, created_at: last.created_at!, id: last.id! }
  }
}

function toExport(row: Row): SessionToExport {
  return { id: row.id!, line: row.line!, last_seq: Number(row.last_seq) }
}
