import { notFound } from '../errors.js'
import { jsonList } from '../lists/resource_json.js'
import type { Database, Parameter, Tenant } from '../postgres/database.js'
import type { Statement } from '../postgres/statement.js'
import { call, type StoredFunction } from '../postgres/stored_function.js'
import { BEFORE_ALL, type Listed } from './listed.js'
import { pagesOf } from './read_list.js'

type Resource = Parameters<typeof notFound>[0]

export function within<T>(
  { database, project_id }: Tenant<Database>,
  work: (tenant: Tenant) => Promise<T>,
): Promise<T> {
  return database.transaction((connection) => work({ database: connection, project_id }))
}

/** The `json` that a statement finds in a project. `$1` is the project. @throws AnnalsError …_not_found without a row */
export async function readResource(
  { database, project_id }: Tenant,
  resource: Resource,
  statement: Statement,
  ...parameters: Parameter[]
): Promise<string> {
  const [row] = await database.query(statement, [project_id, ...parameters])
  if (!row) throw notFound(resource)
  return row.json!
}

/** Returns a stored function's answer. @throws AnnalsError …_not_found where that is null */
export async function changeResource(
  { database, project_id }: Tenant,
  resource: Resource,
  change: StoredFunction,
  ...parameters: Parameter[]
): Promise<string> {
  const answer = await call(database, change, project_id, ...parameters)
  if (answer === null) throw notFound(resource)
  return answer
}

/**
 * All that a list of one owner has as a JSON array, in pieces of so many rows. Parameters of the statement: $1 project, $2
 * owner, $3 created_at and $4 id to begin after, $5 how many.
 */
export function listWhole(
  { database, project_id }: Tenant,
  owner_id: string,
  statement: Statement,
  rows_at_once: number,
): AsyncGenerator<string> {
  const find = async ({ created_at, id } = BEFORE_ALL.asc) => {
    const page = [project_id, owner_id, created_at, id, rows_at_once]
    return (await database.query(statement, page)) as unknown as Listed[]
  }
  return jsonList('[', pagesOf(find, rows_at_once), ']')
}
