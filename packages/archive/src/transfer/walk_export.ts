import { notFound } from '@annals/kits/errors.js'
import { parseId } from '@annals/kits/ids.js'
import { isOwner, orderOf, type Table } from '@annals/kits/lifecycle/table.js'
import type { Queryable, Row } from '@annals/kits/postgres/database.js'
import { ownOf } from '../tables.js'
import type { ExportPiece } from './export_line.js'
import { exportOne, exportOwned, FIND_EXPORTED_USER } from './export_queries.js'

/** Rows in a page: each may have some 100 KB of JSON. */
const ROWS_AT_ONCE_MAX = 100
/** Most users, sessions and the like whose rows one query asks for. */
const OWNERS_AT_ONCE_MAX = 50

/** What to export: a whole project, one of its users with all data, or one session. */
export interface ExportScope {
  project: { id: string; name: string }
  user?: string | undefined
  session_id?: string | undefined
}

/** Every line between header and end, each after what it refers to. */
export async function* walkExport(
  database: Queryable,
  scope: ExportScope,
  all: readonly Table[],
): AsyncGenerator<ExportPiece> {
  yield* walkOwned(database, scope, all)
  const tenant = { database, project_id: scope.project.id }
  for (const table of all) yield* ownOf(table).exportLast?.(tenant, scope) ?? []
}

/** The same for the lines after all sessions. */
async function* walkOwned(
  database: Queryable,
  scope: ExportScope,
  all: readonly Table[],
): AsyncGenerator<ExportPiece> {
  const tables = all.filter((table) => {
    const { exportRows, exportLast } = ownOf(table)
    return table.exported && (exportRows || !exportLast)
  })
  const users = tables.find(({ kind }) => kind === 'user')!
  const source = { database, project_id: scope.project.id, tables }
  if (scope.session_id !== undefined) {
    const session = await findExportedSession(database, scope, all)
    if (session.user !== null)
      for await (const page of userPages(source, users, session.user!)) yield pieceOf(users, page)
    yield* rowsWithDependents(source, sessionsOf(all), [session])
    return
  }
  for await (const page of userPages(source, users, scope.user)) {
    yield pieceOf(users, page)
    yield* everythingOf(
      source,
      'user',
      page.map(({ id }) => id!),
    )
  }
  if (scope.user !== undefined) return
  yield* everythingOf(source, 'user', null)
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

/** The lines of a page of rows, and after them the lines of what goes with these. */
async function* rowsWithDependents(source: Source, table: Table, rows: Row[]): AsyncGenerator<ExportPiece> {
  const { exportRows } = ownOf(table)
  if (exportRows) yield* exportRows(source, rows)
  else yield pieceOf(table, rows)
  if (!isOwner(table)) return
  yield* everythingOf(
    source,
    table.kind,
    rows.map(({ id }) => id!),
  )
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
): AsyncGenerator<Row[]> {
  const { database, project_id } = source
  if (identifier === undefined) return yield* ownedPages(source, users, null)
  const [found] = await database.query(FIND_EXPORTED_USER, [project_id, identifier])
  if (found) yield await database.query(exportOne(users), [project_id, found.id!])
}

/**
 * Pages of what some owners have. Several owners are asked for at once; one that fills a page is finished alone, so that
 * each row is read about once, however many rows an owner has.
 */
async function* ownedPages(
  { database, project_id }: Source,
  table: Table,
  owner_ids: string[] | null,
): AsyncGenerator<Row[]> {
  let at_once = OWNERS_AT_ONCE_MAX
  let from = 0
  let after: (string | null)[] | undefined
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
    if (last) yield rows
    if (rows.length === ROWS_AT_ONCE_MAX) {
      if (!after) at_once = Math.max(at_once >> 1, 1)
      from += Number(last!.ord) - 1
      after = orderOf(table).map((_, index) => last![`position_${index}`]!)
    } else {
      if (!after) at_once = Math.min(at_once * 2, OWNERS_AT_ONCE_MAX)
      from += some?.length ?? 1
      after = undefined
    }
  }
}
