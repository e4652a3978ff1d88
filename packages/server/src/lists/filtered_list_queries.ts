import type { Parameter } from '../postgres/database.js'
import { directionOf, type ListPosition, listParameters, listStatement } from './keyset_queries.js'
import type { Listing, ListStatement } from './listed.js'
import { hasParentText, type ParentFilter, type TermedList, termsStatement } from './term_queries.js'

export interface ListFilter {
  project_id: string
  user?: string | undefined
  /** A JSON object as text, not empty: only rows whose document contains it. */
  document?: string | undefined
  /** The id of a row: only its children; or `none`: only rows without a parent. */
  parent?: string | undefined
}

/** A list in the order of creation, of all rows, or of those of a user or with a document that contains another. */
export interface FilteredList {
  list: TermedList
  listing: Listing
  /** Another order than that of creation: what its cursors are named after, and its pages. */
  order?: { name: string; page(filter: ListFilter, position: ListPosition): ListStatement }
}

/** A listed row belongs to the user with the identifier in $5; to none, if there is none. */
const OF_USER = 't.user_id = (SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $5::text)'

/** Which parent a filter asks for. */
export function parentFilterOf({ parent }: ListFilter): ParentFilter | undefined {
  return parent === undefined || parent === 'none' ? parent : 'given'
}

/** A page of a list, one row more than `limit` if there are more. */
export function filteredList(
  { list, listing, order }: FilteredList,
  filter: ListFilter,
  position: ListPosition,
): ListStatement {
  if (order) return order.page(filter, position)
  const { user, document } = filter
  const { table } = list
  const parent = parentFilterOf(filter)
  const name = `list_${table}`
  if (document !== undefined || (user !== undefined && parent === 'given'))
    return {
      statement: termsStatement({ name, listing, list, parent, direction: directionOf(position) }),
      parameters: termsParameters(filter, position),
      listing,
    }
  const conditions = user === undefined ? [] : [OF_USER]
  if (parent) conditions.push(hasParentText(parent, 't', '$5'))
  const suffix = `${user === undefined ? '' : '_of_user'}${parent ? `_of_parent_${parent}` : ''}`
  const given = user ?? (parent === 'given' ? filter.parent : undefined)
  const parts = { name: `${name}${suffix}`, table, condition: conditions.join(' AND '), listing }
  return listStatement(parts, filter.project_id, position, ...(given === undefined ? [] : [given]))
}

export function termsParameters(filter: ListFilter, position: ListPosition): Parameter[] {
  const { project_id, document = '{}', user = null, parent } = filter
  const given = parentFilterOf(filter) === 'given' ? [parent!] : []
  return [...listParameters(project_id, position), document, user, ...given]
}
