import {
  directionOf,
  type ListPosition,
  type ListStatement,
  listParameters,
  listStatement,
} from './keyset_queries.js'
import { type TermedList, termsStatement } from './term_queries.js'

/** Which rows a list shows. */
export interface ListFilter {
  project_id: string
  /** A user's identifier. */
  user?: string | undefined
  /** A JSON object as text, not empty: only rows whose document contains it. */
  document?: string | undefined
}

/** A list in the order of creation, of all rows, or of those of a user or with a document that contains another. */
export interface FilteredList {
  list: TermedList
  /** SQL of a row's JSON, from `t` and what is joined. */
  json: string
  join?: string
  /** Another order than that of creation: what its cursors are named after, and its pages. */
  order?: { name: string; page(filter: ListFilter, position: ListPosition): ListStatement }
}

/** A listed row belongs to the user with the identifier in $5; to none, if there is none. */
const OF_USER = 't.user_id = (SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $5::text)'

/** A page of a list, one row more than `limit` if there are more. */
export function filteredList(
  { list, json, join = '', order }: FilteredList,
  filter: ListFilter,
  position: ListPosition,
): ListStatement {
  if (order) return order.page(filter, position)
  const { project_id, user, document } = filter
  const { table } = list
  const direction = directionOf(position)
  const parts = { table, json, join, direction }
  const name = `list_${table}`
  const parameters = listParameters(project_id, position)
  if (document !== undefined)
    return {
      statement: termsStatement({ name, list, json, join, direction }),
      parameters: [...parameters, document, user ?? null],
    }
  if (user === undefined) return { statement: listStatement({ name, ...parts }), parameters }
  const statement = listStatement({ name: `${name}_of_user`, condition: OF_USER, ...parts })
  return { statement, parameters: [...parameters, user] }
}
