import type { Sql } from 'sql-template-tag'
import { PAGE_LIMIT_MAX } from '../limits.js'
import { aggregated, type Column } from '../postgres/column_aggregates.js'
import type { Parameter } from '../postgres/database.js'
import { composedOnce, planned, type Statement } from '../postgres/statement.js'

/** One row of a list: the resource as JSON, and its position in the list's order. */
export interface Listed {
  json: string
  created_at: string
  id: string
}

export type Values = Record<string, Array<string | null>>

/**
 * The columns that a list reads of each row `t`, and how they become the resource's JSON: it costs less here than in
 * PostgreSQL.
 */
export interface Listing {
  /** Among them PLACE; and `listed_at`, where the order is not that of `created_at`. */
  columns: Record<string, Column>
  json(values: Values, at: number, project_id: string): string
}

export interface Composed {
  statement: Statement
  parameters: Parameter[]
}

/**
 * The statement of a page of a list. One row with the columns of `listing`, of one row more than `limit` if there are more.
 * Its parameters begin as listParameters says.
 */
export interface ListStatement extends Composed {
  listing: Listing
}

export const PLACE: Record<'id' | 'created_at', Column> = {
  id: { sql: 't.id', as: 'token' },
  created_at: { sql: 't.created_at', as: 'time' },
}

export function idText(id: string | null | undefined): string {
  return id ? `"${id}"` : 'null'
}

export function writtenInSql(json: string): Listing {
  return {
    columns: { ...PLACE, json: { sql: json, as: 'token', is_bounded: true } },
    json: ({ json }, at) => json![at]!,
  }
}

export interface ListPosition {
  time_desc: boolean
  limit: number
  /** The last row of the previous page; the page has the rows after it. It need not exist any more. */
  after: { created_at: string; id: string } | undefined
}

/**
 * A constant larger than any page. The planner does not know the value of `LIMIT $n` and assumes a tenth of the
 * table; this constant tells it that the page is short and that walking its index in order is best.
 */
export const PAGE_ROWS_MAX = PAGE_LIMIT_MAX + 1

export interface Direction {
  name: 'asc' | 'desc'
  order: 'ASC' | 'DESC'
  /** The comparison of a row after a position with that position. */
  behind: '>' | '<'
}

const ASCENDING: Direction = { name: 'asc', order: 'ASC', behind: '>' }
const DESCENDING: Direction = { name: 'desc', order: 'DESC', behind: '<' }

export function directionOf(position: ListPosition): Direction {
  return position.time_desc ? DESCENDING : ASCENDING
}

/** Before everything: the first page is a page after this, so it is the same statement. */
export const BEFORE_ALL = {
  asc: { created_at: '-infinity', id: '00000000-0000-0000-0000-000000000000' },
  desc: { created_at: 'infinity', id: 'ffffffff-ffff-ffff-ffff-ffffffffffff' },
}

/** The parameters of every list: $1 project, $2 created_at and $3 id to start after, $4 rows. */
export function listParameters(project_id: string, position: ListPosition): Parameter[] {
  const after = position.after ?? BEFORE_ALL[directionOf(position).name]
  return [project_id, after.created_at, after.id, position.limit + 1]
}

/** Which of these is the rows. */
export const LIMIT_AT = 3

/**
 * A page of a table's rows that satisfy `condition`, with parameters from $5 on, for which there is an index in the order
 * of (created_at, id). The row comparison lets PostgreSQL start in the index at the position instead of counting up to
 * it. Its plan is the same for all values and sizes, so it is planned once per connection.
 */
export function listStatement(
  parts: { name: string; table: string; condition?: string; listing: Listing },
  project_id: string,
  position: ListPosition,
  ...more: Parameter[]
): ListStatement {
  const { name, table, condition, listing } = parts
  const direction = directionOf(position)
  const { order, behind } = direction
  const statement = composedOnce(
    `${name}_${direction.name}`,
    () => `
SELECT ${aggregated(listing.columns)}
FROM (
  SELECT t.* FROM (
    SELECT t.* FROM {${table}} t
    WHERE t.project_id = $1 ${condition ? `AND ${condition}` : ''} AND (t.created_at, t.id) ${behind} ($2::timestamptz, $3::uuid)
    ORDER BY t.created_at ${order}, t.id ${order}
    LIMIT ${PAGE_ROWS_MAX}
  ) t
  ORDER BY t.created_at ${order}, t.id ${order}
  LIMIT $4
) t`,
    LIMIT_AT,
  )
  return { statement, parameters: [...listParameters(project_id, position), ...more], listing }
}

/**
 * Joins the result of one look-up by key, row by row. OFFSET 0 keeps the planner from other joins, such as hashing
 * the whole table, when it misjudges the number of rows.
 */
export function beside(alias: string, lookUp: string): string {
  return `CROSS JOIN LATERAL (${lookUp} OFFSET 0) ${alias}`
}

/** A statement composed for its parameters, and planned for them. */
export function composed(name: string, query: Sql): Composed {
  return { statement: planned(name, query.text), parameters: query.values as Parameter[] }
}

export interface ListFilter {
  project_id: string
  user?: string | undefined
  /** A JSON object as text, not empty: only rows whose document contains it. */
  document?: string | undefined
  parent?: string | undefined
}

/** A list in the order of creation, of all rows, or of those of a user or with a document that contains another. */
export interface FilteredList {
  list: TermedList
  listing: Listing
  /** Another order than that of creation: what its cursors are named after, and its pages. */
  order?: { name: string; page(filter: ListFilter, position: ListPosition): ListStatement }
}

const OF_USER = 't.user_id = (SELECT u.id FROM {users} u WHERE u.project_id = $1 AND u.identifier = $5::text)'

export function parentFilterOf({ parent }: ListFilter): ParentFilter | undefined {
  return parent === undefined || parent === 'none' ? parent : 'given'
}

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
    return termsPage({ name, listing, list, direction: directionOf(position) }, filter, position)
  const conditions = user === undefined ? [] : [OF_USER]
  if (parent) conditions.push(hasParentText(parent, 't', '$5'))
  const suffix = `${user === undefined ? '' : '_of_user'}${parent ? `_of_parent_${parent}` : ''}`
  const given = user ?? (parent === 'given' ? filter.parent : undefined)
  const parts = { name: `${name}${suffix}`, table, condition: conditions.join(' AND '), listing }
  return listStatement(parts, filter.project_id, position, ...(given === undefined ? [] : [given]))
}

/**
 * The ordered index of terms; migrations/0004_list_terms.sql defines terms. Every statement that writes or deletes a
 * listed row, or changes its document, writes its terms in the same transaction, with the fragments below.
 */

/** A table whose rows are listed by what a column of theirs, the document, contains. */
export interface TermedList {
  readonly table: string
  readonly document: string
  /** Whether rows may have a parent. */
  readonly has_parents?: boolean
}

/** Which parent rows have: the one in a parameter, or none. */
export type ParentFilter = 'given' | 'none'

/** SQL: whether a row has such a parent. `given` is the parameter. */
export function hasParentText(parent: ParentFilter, row: string, given: string): string {
  return parent === 'none' ? `${row}.parent_id IS NULL` : `${row}.parent_id = ${given}::uuid`
}

/** A table of terms, with its columns for the place in the order: the time, and the id that breaks ties. */
export interface TermsIndex {
  table: string
  at: string
  item_id: string
}

interface TermList {
  name: string
  list: TermedList
  /** The index that is walked, whose terms are those of the list; by default in the order of created_at. */
  index?: TermsIndex
  listing: Listing
  direction: Direction
}

const LIST_TERMS: TermsIndex = { table: 'list_terms', at: 'created_at', item_id: 'item_id' }

/** Most terms of a filter that are used; more would cost more than they save. */
export const FILTER_TERMS_MAX = 16
/** How many rows of each term are probed to find the rarest from here on. */
const PROBED_ROWS = 200

/** The terms of a row and the signature beside them: what the index must have for it. */
export function indexTermsText(list: TermedList, row: string, document = `${row}.${list.document}`): string {
  return `index_terms('${list.table}', ${document}, ${row}.user_id${list.has_parents ? `, ${row}.parent_id` : ''})`
}

/**
 * Writes the terms of new rows. `rows` is a table expression with created_at, id, the document, and what else
 * indexTermsText takes; `project` a parameter.
 */
export function insertTerms(list: TermedList, project: string, rows: string): string {
  return `
  INSERT INTO list_terms AS t (project_id, term, created_at, item_id, signature)
  SELECT ${project}, x.term, r.created_at, r.id, i.signature
  FROM ${rows} r
  CROSS JOIN LATERAL ${indexTermsText(list, 'r')} AS i
  CROSS JOIN LATERAL unnest(i.terms) AS x (term)`
}

/**
 * Steps of a stored function that move the terms of one row from its document to another. The function has locked the
 * row before it read the document. `before` is a record with the row's id, created_at, document and what else
 * indexTermsText takes, `after` an expression for the new document. They use the variables in MOVE_TERMS_VARIABLES.
 */
export function moveTerms(list: TermedList, before: string, after: string): string {
  const ofRow = `t.project_id = p_project AND t.created_at = ${before}.created_at AND t.item_id = ${before}.id`
  return `
  terms_before := (${indexTermsText(list, before)}).terms;
  SELECT i.terms, i.signature INTO terms_after, new_signature FROM ${indexTermsText(list, before, after)} AS i;
  DELETE FROM list_terms AS t
  WHERE ${ofRow} AND t.term = ANY (terms_before) AND t.term <> ALL (terms_after);
  UPDATE list_terms AS t SET signature = new_signature
  WHERE ${ofRow} AND t.term = ANY (terms_after) AND t.signature <> new_signature;
  INSERT INTO list_terms AS t (project_id, term, created_at, item_id, signature)
  SELECT p_project, x.term, ${before}.created_at, ${before}.id, new_signature
  FROM unnest(terms_after) AS x (term) WHERE x.term <> ALL (terms_before);`
}

export const MOVE_TERMS_VARIABLES = `terms_before bigint[];
  terms_after bigint[];
  new_signature bigint;`

/**
 * Deletes the terms of rows that are about to be deleted, by ids in $2, of the project in $1. It is a separate
 * statement before the deletion, because it finds the terms by their documents. The keys are computed first, so that
 * each row is found by its complete key: without statistics, a planner would rather search the rows of all terms.
 */
export function dropTerms(list: TermedList): string {
  return `WITH gone AS MATERIALIZED (
  SELECT x.term, r.created_at, r.id
  FROM ${list.table} r CROSS JOIN LATERAL ${indexTermsText(list, 'r')} AS i
  CROSS JOIN LATERAL unnest(i.terms) AS x (term)
  WHERE r.project_id = $1 AND r.id = ANY ($2::uuid[])
)
DELETE FROM list_terms AS t USING gone g
WHERE t.project_id = $1 AND t.term = g.term AND t.created_at = g.created_at AND t.item_id = g.id`
}

/**
 * A page of rows whose document contains the filter, and which belong to the user if one is named. Its statement leaves
 * nothing to the planner's statistics, which may be old, absent or wrong:
 *
 *   1. `begins`: each term of the filter is looked up after the position. No row before the latest of these first
 *      rows can match; if a term has none, no row can.
 *   2. `entered`: the term that gets furthest in so many rows from there is the rarest at this place.
 *   3. `page`: the index is walked under that term alone. Rows that lack a bit or a row of another term are skipped
 *      inside the index; the others are compared with the filter, until the page is full.
 *
 * For a filter of one term, which most are, the third step is enough, and takes half as long.
 */
export function termsPage(list: TermList, filter: ListFilter, position: ListPosition): ListStatement {
  const { name, direction, listing } = list
  const { project_id, document = '{}', user, parent: parent_id } = filter
  const parent = parentFilterOf(filter)
  const parameters = [...listParameters(project_id, position), document]
  const isOfOne = user === undefined && parent !== 'given' && hasOneTerm(document)
  if (!isOfOne) parameters.push(user ?? null, ...(parent === 'given' ? [parent_id!] : []))
  const suffix = `${isOfOne ? '_by_term' : '_by_terms'}${parent ? `_of_parent_${parent}` : ''}_${direction.name}`
  const text = isOfOne ? termText : termsText
  return {
    statement: composedOnce(`${name}${suffix}`, () => text(list, parent), LIMIT_AT),
    parameters,
    listing,
  }
}

/** Levels of a document that have terms of their own, as in json_terms: migrations/0004_list_terms.sql. */
const LEVELS_MAX = 7

/** Whether all that is asked for is one value: `{"run":{"env":"prod"}}`. */
function hasOneTerm(document: string): boolean {
  let value: unknown = JSON.parse(document)
  for (let level = 0; level < LEVELS_MAX; level++) {
    if (typeof value !== 'object' || value === null) return true
    const members = Array.isArray(value) ? [] : Object.values(value)
    if (members.length !== 1) return false
    value = members[0]
  }
  return false
}

/** Parameters: as in listParameters, and $5 the filter as JSON. */
function termText(list: TermList, parent: ParentFilter | undefined): string {
  const { at, item_id } = list.index ?? LIST_TERMS
  const condition = `(t.${at}, t.${item_id}) ${list.direction.behind} ($2::timestamptz, $3::uuid)`
  const parentText = parent ? ` AND ${hasParentText(parent, 'r', '')}` : ''
  return `
WITH entered AS MATERIALIZED (
  SELECT w.term FROM unnest(json_terms('${list.list.table}', $5::jsonb, true)) AS w (term)
), ${pageText(list, condition, parentText)}`
}

/** Parameters: as in listParameters, and $5 the filter as JSON, $6 the user's identifier or null, $7 a given parent. */
function termsText(terms: TermList, parent: ParentFilter | undefined): string {
  const { list, index = LIST_TERMS, direction } = terms
  const { table, at, item_id } = index
  const { order, behind } = direction
  const opposite = direction.name === 'asc' ? 'DESC' : 'ASC'
  const nearest = direction.name === 'asc' ? 'min' : 'max'
  const ofTerm = 't.project_id = $1 AND t.term = a.term'
  const fromBegin = `(t.${at}, t.${item_id}) ${behind}= ((SELECT b.at FROM begins b), (SELECT b.item_id FROM begins b))`
  const inOrder = `ORDER BY t.${at} ${order}, t.${item_id} ${order}`
  const candidates = `t.signature & (SELECT s.mask FROM signed s) = (SELECT s.mask FROM signed s) AND ${hasAllTerms('t', index)}`
  const ofOwner = `
        AND ($6::text IS NULL OR r.user_id = (SELECT o.id FROM owner o))${parent ? ` AND ${hasParentText(parent, 'r', '$7')}` : ''}`
  const parentTerm = parent === 'given' ? `UNION ALL SELECT parent_term('${list.table}', $7::uuid)` : ''
  return `
WITH owner AS MATERIALIZED (
  SELECT u.id FROM {users} u WHERE u.project_id = $1 AND u.identifier = $6::text
), wanted AS MATERIALIZED (
  SELECT user_term('${list.table}', o.id) AS term FROM owner o ${parentTerm}
  UNION ALL
  (SELECT w.term FROM unnest(json_terms('${list.table}', $5::jsonb, true)) AS w (term) ORDER BY w.term & 7 LIMIT ${FILTER_TERMS_MAX})
), signed AS MATERIALIZED (
  SELECT bit_or(term_bits(w.term)) AS mask FROM wanted w
), firsts AS MATERIALIZED (
  SELECT f.${at} AS at, f.${item_id} AS item_id FROM wanted w LEFT JOIN LATERAL (
    SELECT t.${at}, t.${item_id} FROM (${armsText('w.term')}) AS a (term)
    CROSS JOIN LATERAL (
      SELECT t.${at}, t.${item_id} FROM {${table}} t
      WHERE ${ofTerm} AND (t.${at}, t.${item_id}) ${behind} ($2::timestamptz, $3::uuid) ${inOrder} LIMIT 1
    ) t
    ${inOrder} LIMIT 1
  ) f ON true
), begins AS MATERIALIZED (
  SELECT f.at, f.item_id FROM firsts f
  WHERE NOT EXISTS (SELECT FROM firsts n WHERE n.at IS NULL) AND ($6::text IS NULL OR EXISTS (SELECT FROM owner))
  ORDER BY f.at ${opposite}, f.item_id ${opposite} LIMIT 1
), entered AS MATERIALIZED (
  SELECT w.term FROM wanted w
  ORDER BY CASE WHEN (SELECT count(*) FROM wanted) > 1 THEN (
    SELECT ${nearest}(t.${at}) FROM (${armsText('w.term')}) AS a (term)
    CROSS JOIN LATERAL (
      SELECT t.${at} FROM {${table}} t WHERE ${ofTerm} AND ${fromBegin} ${inOrder} OFFSET ${PROBED_ROWS} LIMIT 1
    ) t
  ) END ${opposite} NULLS FIRST
  LIMIT 1
), ${pageText(terms, `${fromBegin} AND ${candidates}`, ofOwner)}`
}

/** The rows under the term of `entered`: `condition` of the index's rows, `more` of those that contain the filter. */
function pageText(
  { list, index = LIST_TERMS, listing, direction }: TermList,
  condition: string,
  more: string,
): string {
  const { table, at, item_id } = index
  const { order } = direction
  const matching = `SELECT r.* FROM {${list.table}} r WHERE r.project_id = $1 AND r.id = t.${item_id} AND r.${list.document} @> $5::jsonb${more}`
  return `page AS MATERIALIZED (
  SELECT f.*
  FROM (SELECT b.term FROM entered e CROSS JOIN LATERAL (${armsText('e.term')}) AS b (term)) AS a (term)
  CROSS JOIN LATERAL (
    SELECT p.* FROM (
      SELECT r.*, t.${at} AS listed_at FROM {${table}} t ${beside('r', matching)}
      WHERE t.project_id = $1 AND t.term = a.term AND ${condition}
      ORDER BY t.${at} ${order}, t.${item_id} ${order}
      LIMIT ${PAGE_ROWS_MAX}
    ) p
    LIMIT $4
  ) f
  ORDER BY f.listed_at ${order}, f.id ${order}
  LIMIT $4
)
SELECT ${aggregated(listing.columns)}
FROM (SELECT p.* FROM page p ORDER BY p.listed_at ${order}, p.id ${order}) t`
}

/**
 * Where documents with a term are found: under the term itself, and, if they were cut off above the term's level,
 * under the number of that level.
 */
export function armsText(term: string): string {
  return `SELECT ${term} UNION ALL SELECT generate_series(0, (${term} & 7) - 1)`
}

/** Whether a term's row has rows beside it for all wanted terms, as far as its document was not cut off. */
function hasAllTerms(row: string, { table, at, item_id }: TermsIndex): string {
  return `(${row}.signature = -1 OR NOT EXISTS (SELECT FROM wanted w WHERE w.term <> ${row}.term AND NOT EXISTS (
        SELECT FROM {${table}} o
        WHERE o.project_id = $1 AND o.term = w.term AND o.${at} = ${row}.${at} AND o.${item_id} = ${row}.${item_id} OFFSET 0)))`
}
