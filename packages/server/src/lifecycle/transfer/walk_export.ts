import { notFound } from '../../errors.js'
import { parseId } from '../../ids.js'
import type { Queryable, Row } from '../../postgres/database.js'
import { isOwner, orderOf, type Table } from '../table.js'
import type { ExportPiece } from './export_line.js'
import { exportOne, exportOwned, FIND_EXPORTED_USER } from './export_queries.js'

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

/** A row behind which a table's walk goes on: of which owner, and its position in the table's order. */
interface RowPlace {
  table: string
  owner_id: string | null
  after: (string | null)[]
}

/**
 * Where a walk stands, with everything before it written: in the page of users behind `users_after`, in what no user
 * has, in what the project has, or behind all that.
 */
export interface Place {
  part: 'users' | 'nobody' | 'project' | 'behind'
  users_after?: string | undefined
  row?: RowPlace | undefined
}

/** A piece of a walk; `place` if an interrupted walk may go on behind it. */
export type WalkedPiece = ExportPiece & { place?: Place }

const PARTS: ReadonlyArray<Place['part']> = ['users', 'nobody', 'project', 'behind']

/** Every line between header and end, each after what it refers to. */
export async function* walkExport(
  database: Queryable,
  scope: ExportScope,
  all: readonly Table[],
  from: Place = { part: 'users' },
): AsyncGenerator<WalkedPiece> {
  yield* walkOwned(database, scope, all, from)
  for (const { own } of all)
    if (own?.exportBehind) yield* own.exportBehind({ database, project_id: scope.project.id }, scope)
}

/** The same but for what stands behind all sessions. */
async function* walkOwned(
  database: Queryable,
  scope: ExportScope,
  all: readonly Table[],
  from: Place,
): AsyncGenerator<WalkedPiece> {
  const tables = all.filter(({ exported, own }) => exported && !own?.exportBehind)
  const users = tables.find(({ kind }) => kind === 'user')!
  const source = { database, project_id: scope.project.id, tables }
  if (scope.session_id !== undefined) {
    const session = await findExportedSession(database, scope, all)
    if (session.user !== null)
      for await (const page of userPages(source, users, session.user!)) yield pieceOf(users, page)
    yield* rowsWithDependents(source, sessionsOf(all), [session])
    return
  }
  const rest = PARTS.slice(PARTS.indexOf(from.part))
  let row = from.row
  if (rest[0] === 'users') {
    let users_after = from.users_after
    for await (const page of userPages(source, users, scope.user, users_after)) {
      // Written again where a walk goes on within the page: another user may have come into it. An import knows the rest.
      yield row ? { ...pieceOf(users, page), counts: {} } : pieceOf(users, page)
      const ids = page.map(({ id }) => id!)
      yield* placed(everythingOf(source, 'user', ids, row), { part: 'users', users_after })
      row = undefined
      users_after = ids.at(-1)
      yield { lines: [], counts: {}, place: { part: 'users', users_after } }
    }
  }
  if (scope.user !== undefined) return
  for (const part of rest) {
    if (part === 'nobody') yield* placed(everythingOf(source, 'user', null, row), { part })
    const owned = { ...source, tables: tables.filter((table) => table !== users) }
    if (part === 'project') yield* placed(everythingOf(owned, 'project', null, row), { part })
    row = undefined
    if (part === 'behind') yield { lines: [], counts: {}, place: { part } }
  }
}

/** Pieces with their places in a part of the walk. */
async function* placed(
  pieces: AsyncGenerator<ExportPiece & { row?: RowPlace }>,
  part: Place,
): AsyncGenerator<WalkedPiece> {
  for await (const { row, ...piece } of pieces) yield row ? { ...piece, place: { ...part, row } } : piece
}

interface Source {
  database: Queryable
  project_id: string
  tables: readonly Table[]
}

/** What some users have, or no user, or the project itself; behind a row. */
async function* everythingOf(
  source: Source,
  kind: string,
  ids: string[] | null,
  from?: RowPlace,
): AsyncGenerator<ExportPiece & { row?: RowPlace }> {
  const tables = source.tables.filter(({ erased_with }) => erased_with === kind)
  const first = from ? tables.findIndex(({ name }) => name === from.table) : 0
  for (const [index, table] of tables.slice(first).entries())
    for await (const { rows, row } of ownedPages(source, table, ids, index === 0 ? from : undefined)) {
      yield* rowsWithDependents(source, table, rows)
      yield { lines: [], counts: {}, row }
    }
}

/** The lines of a page of rows, and behind them the lines of what goes with these. */
async function* rowsWithDependents(source: Source, table: Table, rows: Row[]): AsyncGenerator<ExportPiece> {
  if (table.own?.exportRows) yield* table.own.exportRows(source, rows)
  else yield pieceOf(table, rows)
  if (!isOwner(table)) return
  const ids = rows.map(({ id }) => id!)
  for await (const { lines, counts } of everythingOf(source, table.kind, ids))
    if (lines.length > 0) yield { lines, counts }
}

function pieceOf({ name }: Table, rows: Row[]): ExportPiece {
  return { lines: rows.map((row) => row.line!), counts: { [name]: rows.length } }
}

function sessionsOf(tables: readonly Table[]): Table {
  return tables.find(({ kind }) => kind === 'session')!
}

export async function findExportedSession(
  database: Queryable,
  { project, session_id }: ExportScope,
  tables: readonly Table[],
): Promise<Row> {
  const id = parseId(session_id!)
  const [row] = id === undefined ? [] : await database.query(exportOne(sessionsOf(tables)), [project.id, id])
  if (!row) throw notFound('session')
  return row
}

async function* userPages(
  source: Source,
  users: Table,
  identifier: string | undefined,
  after?: string,
): AsyncGenerator<Row[]> {
  const { database, project_id } = source
  if (identifier !== undefined) {
    const [found] = await database.query(FIND_EXPORTED_USER, [project_id, identifier])
    if (found) yield await database.query(exportOne(users), [project_id, found.id!])
    return
  }
  const place = after === undefined ? undefined : { table: users.name, owner_id: null, after: [after] }
  for await (const { rows } of ownedPages(source, users, null, place)) yield rows
}

/**
 * Pages of what some owners have, each with the place of its last row. Several owners are asked for at once; one that
 * fills a page is finished alone, so that each row is read about once, however many rows an owner has. The ids of the
 * owners are in order if a walk goes on among them.
 */
async function* ownedPages(
  { database, project_id }: Source,
  table: Table,
  owner_ids: string[] | null,
  place?: RowPlace,
): AsyncGenerator<{ rows: Row[]; row: RowPlace }> {
  let at_once = OWNERS_AT_ONCE_MAX
  let from = place?.owner_id ? owner_ids!.findIndex((id) => id >= place.owner_id!) : 0
  if (from === -1) return
  let after = place && (owner_ids?.[from] ?? null) === place.owner_id ? place.after : undefined
  while (from < (owner_ids?.length ?? 1)) {
    const some = owner_ids?.slice(from, from + (after ? 1 : at_once)) ?? null
    const { statement, parameters } = exportOwned(table, {
      project_id,
      owner_ids: some,
      after,
      limit: ROWS_AT_ONCE_MAX,
    })
    const rows = await database.query(statement, parameters)
    const last = rows.at(-1)
    const position = orderOf(table).map((_, index) => last?.[`position_${index}`] ?? null)
    const owner_id = last && some ? some[Number(last.ord) - 1]! : null
    if (last) yield { rows, row: { table: table.name, owner_id, after: position } }
    if (rows.length === ROWS_AT_ONCE_MAX) {
      if (!after) at_once = Math.max(at_once >> 1, 1)
      from += Number(last!.ord) - 1
      after = position
    } else {
      if (!after) at_once = Math.min(at_once * 2, OWNERS_AT_ONCE_MAX)
      from += some?.length ?? 1
      after = undefined
    }
  }
}
