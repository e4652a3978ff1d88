import { createHash } from 'node:crypto'
import { notFound } from '../../errors.js'
import { parseId } from '../../ids.js'
import type { Queryable, Row } from '../../postgres/database.js'
import { VERSION } from '../../version.js'
import { addCounts } from '../erase/dependents.js'
import { type Counts, isOwner, orderOf, type Table } from '../table.js'
import { type ExportHeader, FORMAT_VERSION } from './export_format.js'
import type { ExportOutput } from './export_output.js'
import type { ExportPiece } from './export_piece.js'
import { exportOne, exportOwned, exportUsers, FIND_EXPORTED_USER, MEASURE_EXPORT } from './export_queries.js'

const USERS_AT_ONCE_MAX = 500
/** Rows in a page: each may have some 100 KB of JSON. */
const ROWS_AT_ONCE_MAX = 100
/** Users, sessions and the like whose rows are asked for at once. */
const OWNERS_AT_ONCE_MAX = 50

/** What to export: a whole project, one of its users with all data, or one session. */
export interface ExportScope {
  project: { id: string; name: string }
  user?: string | undefined
  session_id?: string | undefined
}

/** Lines and bytes of an export, and how many rows of what it has. */
export interface ExportCounts {
  rows: Counts
  lines: number
  bytes: number
}

export interface ExportOptions {
  tables: readonly Table[]
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
export async function measureExport(
  database: Queryable,
  scope: ExportScope,
  tables: readonly Table[],
): Promise<number> {
  const { project, user } = scope
  if (scope.session_id !== undefined) return Number((await findSession(database, scope, tables)).last_seq)
  if (user === undefined)
    return Number((await database.query(MEASURE_EXPORT.project, [project.id]))[0]!.entries)
  const [found] = await database.query(FIND_EXPORTED_USER, [project.id, user])
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
  const counts: ExportCounts = { rows: {}, lines: 0, bytes: 0 }
  for (const { name, exported, own } of options.tables)
    if (exported) for (const counted of [name, ...(own?.further_counts ?? [])]) counts.rows[counted] = 0
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
  for await (const piece of walk(database, scope, options.tables)) {
    addCounts(counts.rows, piece.counts)
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

/** Every line between header and end, each after what it refers to. */
async function* walk(
  database: Queryable,
  scope: ExportScope,
  all: readonly Table[],
): AsyncGenerator<ExportPiece> {
  yield* walkOwned(database, scope, all)
  for (const { own } of all) if (own?.exportBehind) yield* own.exportBehind(database, scope.project.id, scope)
}

/** The same but for what stands behind all sessions. */
async function* walkOwned(
  database: Queryable,
  scope: ExportScope,
  all: readonly Table[],
): AsyncGenerator<ExportPiece> {
  const tables = all.filter(({ exported, own }) => exported && !own?.exportBehind)
  const users = tables.find(({ kind }) => kind === 'user')!
  const source = { database, project_id: scope.project.id, tables }
  if (scope.session_id !== undefined) {
    const session = await findSession(database, scope, all)
    if (session.user !== null)
      for await (const page of userPages(source, users, session.user!)) yield pieceOf(users, page)
    yield* rowsWithDependents(source, sessionsOf(all), [session])
    return
  }
  const owned = (ids: string[] | null) => everythingOf(source, 'user', ids)
  for await (const page of userPages(source, users, scope.user)) {
    yield pieceOf(users, page)
    yield* owned(page.map((row) => row.id!))
  }
  if (scope.user !== undefined) return
  yield* owned(null)
  yield* everythingOf({ ...source, tables: tables.filter((table) => table !== users) }, 'project', null)
}

interface Source {
  database: Queryable
  project_id: string
  tables: readonly Table[]
}

/** What some users have, or no user, or the project itself. */
async function* everythingOf(
  source: Source,
  kind: string,
  ids: string[] | null,
): AsyncGenerator<ExportPiece> {
  for (const table of source.tables.filter(({ erased_with }) => erased_with === kind))
    for await (const rows of ownedPages(source, table, ids)) yield* rowsWithDependents(source, table, rows)
}

/** The lines of a page of rows, and behind them the lines of what goes with these. */
async function* rowsWithDependents(source: Source, table: Table, rows: Row[]): AsyncGenerator<ExportPiece> {
  if (table.own?.exportRows) yield* table.own.exportRows(source.database, source.project_id, rows)
  else yield pieceOf(table, rows)
  if (isOwner(table))
    yield* everythingOf(
      source,
      table.kind,
      rows.map((row) => row.id!),
    )
}

function pieceOf({ name }: Table, rows: Row[]): ExportPiece {
  return { lines: rows.map((row) => row.line!), counts: { [name]: rows.length } }
}

function sessionsOf(tables: readonly Table[]): Table {
  return tables.find(({ kind }) => kind === 'session')!
}

async function findSession(
  database: Queryable,
  { project, session_id }: ExportScope,
  tables: readonly Table[],
): Promise<Row> {
  const id = parseId(session_id!)
  const [row] = id === undefined ? [] : await database.query(exportOne(sessionsOf(tables)), [project.id, id])
  if (!row) throw notFound('session')
  return row
}

/** Users by id. */
async function* userPages(
  { database, project_id }: Source,
  users: Table,
  identifier: string | undefined,
): AsyncGenerator<Row[]> {
  let after: string | undefined
  for (;;) {
    const page = { project_id, identifier, after, limit: USERS_AT_ONCE_MAX }
    const { statement, parameters } = exportUsers(users, page)
    const rows = await database.query(statement, parameters)
    if (rows.length > 0) yield rows
    if (rows.length < USERS_AT_ONCE_MAX) return
    after = rows.at(-1)!.id!
  }
}

/**
 * Pages of what some owners have. Several are asked for at once; one that fills a page is finished alone, so that each
 * row is read about once, however many rows an owner has.
 */
async function* ownedPages(
  { database, project_id }: Source,
  table: Table,
  owner_ids: string[] | null,
): AsyncGenerator<Row[]> {
  let at_once = OWNERS_AT_ONCE_MAX
  let after: (string | null)[] | undefined
  for (let from = 0; from < (owner_ids?.length ?? 1); ) {
    const some = owner_ids?.slice(from, from + (after ? 1 : at_once)) ?? null
    const { statement, parameters } = exportOwned(table, {
      project_id,
      owner_ids: some,
      after,
      limit: ROWS_AT_ONCE_MAX,
    })
    const rows = await database.query(statement, parameters)
    if (rows.length > 0) yield rows
    if (rows.length === ROWS_AT_ONCE_MAX) {
      const last = rows.at(-1)!
      if (!after) at_once = Math.max(at_once >> 1, 1)
      from += Number(last.ord) - 1
      after = orderOf(table).map((_, index) => last[`position_${index}`]!)
    } else {
      if (!after) at_once = Math.min(at_once * 2, OWNERS_AT_ONCE_MAX)
      from += some?.length ?? 1
      after = undefined
    }
  }
}
