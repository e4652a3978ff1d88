import { castOf, columnText, orderOf, ownerColumn, type Table } from '@annals/kits/lifecycle/table.js'
import {
  type Listing,
  type ListPosition,
  type ListStatement,
  listStatement,
  PLACE,
} from '@annals/kits/lists/listed.js'
import { prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { sqlFile } from '@annals/kits/postgres/stored_function.js'

/**
 * Steps of a stored function that set `owner`: the user with the identifier in `p_user`, created under the id
 * `p_new_user` if new, or null if `p_user` is null. They end the function with null if somebody erases the user
 * meanwhile; the caller then calls it again.
 */
export const FIND_OR_CREATE_OWNER = `\n${sqlFile('users/find_or_create_owner.sql').trimEnd()}`

export const FIND_USER = prepared(
  'find_user',
  'SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $2',
)

const LISTING: Listing = {
  columns: {
    ...PLACE,
    identifier: { sql: 'to_json(t.identifier)', as: 'token' },
    updated_at: { sql: 't.updated_at', as: 'time' },
  },
  json: ({ id, identifier, created_at, updated_at }, at, project_id) =>
    `{"id":"${id![at]}","project_id":"${project_id}","identifier":${identifier![at]},"created_at":"${created_at![at]}","updated_at":"${updated_at![at]}"}`,
}

export function listUsers(project_id: string, position: ListPosition): ListStatement {
  return listStatement({ name: 'list_users', table: 'users', listing: LISTING }, project_id, position)
}

/** Rows that one statement counts at most. */
export const COUNTED_AT_ONCE_MAX = 10_000

/**
 * Counts a bounded number of rows. Row: how many there are, and where the last of them stands; none where there are
 * none. Parameters: $1 project, $2 user, and from $3 on the position to begin after.
 */
export function countSome(table: Table, is_next: boolean): Statement {
  const { name, columns } = table
  const order = orderOf(table)
  const position = order.join(', ')
  const after = order.map((column, index) => `$${index + 3}::${castOf(columns[column]!)}`)
  const is_behind = is_next ? `AND (${position}) > (${after.join(', ')})` : ''
  return prepared(
    `count_owned_${name}${is_next ? '_next' : ''}`,
    `
SELECT n.found, ${order.map((column, index) => `${columnText(column, columns[column]!, 'n')} AS position_${index}`).join(', ')}
FROM (
  SELECT t.*, row_number() OVER (ORDER BY ${position}) AS found
  FROM (
    SELECT ${position} FROM ${name}
    WHERE project_id = $1 AND ${ownerColumn(table)} = $2 ${is_behind}
    ORDER BY ${position} LIMIT ${COUNTED_AT_ONCE_MAX}
  ) t
) n
ORDER BY n.found DESC LIMIT 1`,
  )
}
