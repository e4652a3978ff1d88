import { aggregated } from '../postgres/column_aggregates.js'
import { composedOnce, type Statement } from '../postgres/statement.js'
import { beside, type Direction, PAGE_ROWS_MAX } from './keyset_queries.js'
import type { Listing } from './listed.js'

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

interface FilteredList {
  name: string
  list: TermedList
  /** Only rows with such a parent. */
  parent?: ParentFilter | undefined
  /** The index that is walked, whose terms are those of the list; by default in the order of created_at. */
  index?: TermsIndex
  listing: Listing
  direction: Direction
}

const LIST_TERMS: TermsIndex = { table: 'list_terms', at: 'created_at', item_id: 'item_id' }

/** Most terms of a filter that are used; more would cost more than they save. */
const FILTER_TERMS_MAX = 16
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
 * The statement for a page of rows whose document contains the filter, and which belong to the user if one is named.
 * It leaves nothing to the planner's statistics, which may be old, absent or wrong:
 *
 *   1. `begins`: each term of the filter is looked up after the position. No row before the latest of these first
 *      rows can match; if a term has none, no row can.
 *   2. `entered`: the term that gets furthest in so many rows from there is the rarest at this place.
 *   3. `page`: the index is walked under that term alone. Rows that lack a bit or a row of another term are skipped
 *      inside the index; the others are compared with the filter, until the page is full.
 *
 * Parameters: as in listParameters, and $5 the filter as JSON, $6 the user's identifier or null, $7 a given parent.
 */
export function termsStatement(parts: FilteredList): Statement {
  const { name, parent, direction } = parts
  return composedOnce(`${name}_by_terms${parent ? `_of_parent_${parent}` : ''}_${direction.name}`, () =>
    termsText(parts),
  )
}

function termsText({ list, index = LIST_TERMS, parent, listing, direction }: FilteredList): string {
  const { table, at, item_id } = index
  const { order, behind } = direction
  const opposite = direction.name === 'asc' ? 'DESC' : 'ASC'
  const nearest = direction.name === 'asc' ? 'min' : 'max'
  const ofTerm = 't.project_id = $1 AND t.term = a.term'
  const fromBegin = `(t.${at}, t.${item_id}) ${behind}= ((SELECT b.at FROM begins b), (SELECT b.item_id FROM begins b))`
  const inOrder = `ORDER BY t.${at} ${order}, t.${item_id} ${order}`
  const candidates = `t.signature & (SELECT s.mask FROM signed s) = (SELECT s.mask FROM signed s) AND ${hasAllTerms('t', index)}`
  const matching = `SELECT r.* FROM ${list.table} r WHERE r.project_id = $1 AND r.id = t.${item_id} AND r.${list.document} @> $5::jsonb
        AND ($6::text IS NULL OR r.user_id = (SELECT o.id FROM owner o))${parent ? ` AND ${hasParentText(parent, 'r', '$7')}` : ''}`
  const parentTerm = parent === 'given' ? `UNION ALL SELECT parent_term('${list.table}', $7::uuid)` : ''
  return `
WITH owner AS MATERIALIZED (
  SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $6::text
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
      SELECT t.${at}, t.${item_id} FROM ${table} t
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
      SELECT t.${at} FROM ${table} t WHERE ${ofTerm} AND ${fromBegin} ${inOrder} OFFSET ${PROBED_ROWS} LIMIT 1
    ) t
  ) END ${opposite} NULLS FIRST
  LIMIT 1
), page AS MATERIALIZED (
  SELECT f.*
  FROM (SELECT b.term FROM entered e CROSS JOIN LATERAL (${armsText('e.term')}) AS b (term)) AS a (term)
  CROSS JOIN LATERAL (
    SELECT p.* FROM (
      SELECT r.*, t.${at} AS listed_at FROM ${table} t ${beside('r', matching)}
      WHERE ${ofTerm} AND ${fromBegin} AND ${candidates}
      ${inOrder}
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
        SELECT FROM ${table} o
        WHERE o.project_id = $1 AND o.term = w.term AND o.${at} = ${row}.${at} AND o.${item_id} = ${row}.${item_id} OFFSET 0)))`
}
