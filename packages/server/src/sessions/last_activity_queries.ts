import type { Listing, ListStatement } from '@annals/kits/lists/listed.js'
import {
  beside,
  directionOf,
  type FilteredList,
  hasParentText,
  indexTermsText,
  LIMIT_AT,
  type ListFilter,
  type ListPosition,
  listParameters,
  PAGE_ROWS_MAX,
  parentFilterOf,
  termsPage,
} from '@annals/kits/lists/listed.js'
import { aggregated } from '@annals/kits/postgres/column_aggregates.js'
import { composedOnce, prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { storedInsert } from '@annals/kits/postgres/stored_function.js'
import { SESSION_LIST } from '../log/append/append_queries.js'
import { SESSIONS } from './session_queries.js'

/** The term of every session. */
const EVERY = '7::bigint'

/** SQL: whether session_activity lacks what the head `h` says. Parameters: $1 project. */
export const ACTIVITY_IS_BEHIND = `date_trunc('second', h.updated_at, 'UTC') IS DISTINCT FROM (
    SELECT a.active_at FROM session_activity a WHERE a.project_id = $1 AND a.session_id = h.session_id)`

/** Takes sessions out of the order, with the terms under which they stand in it. Parameters: $1 project, $2 sessions. */
export const DROP_ACTIVITY = dropActivity('drop_activity', '$2::uuid[]')

/** The same with any that there are. Parameters: $1 project, $2 how many. Rows: one each. */
export const ERASE_ACTIVITY = dropActivity(
  'erase_some_activity',
  'ARRAY(SELECT o.session_id FROM session_activity o WHERE o.project_id = $1 ORDER BY o.session_id LIMIT $2)',
)

function dropActivity(name: string, sessions: string): Statement {
  return prepared(
    name,
    `
WITH gone AS MATERIALIZED (
  SELECT x.term, a.active_at, a.session_id
  FROM session_activity a CROSS JOIN LATERAL unnest(a.terms) AS x (term)
  WHERE a.project_id = $1 AND a.session_id = ANY (${sessions})
), dropped AS (
  DELETE FROM activity_terms AS t USING gone g
  WHERE t.project_id = $1 AND t.term = g.term AND t.active_at = g.active_at AND t.session_id = g.session_id
)
DELETE FROM session_activity AS a WHERE a.project_id = $1 AND a.session_id = ANY (${sessions}) RETURNING 1 AS gone`,
  )
}

/** Puts sessions into the order that are not in it. Parameters: $1 project, $2 sessions, $3 their updated_at. */
export const ADD_ACTIVITY = storedInsert(
  'add_activity',
  ['uuid[]', 'timestamptz[]'],
  `INSERT INTO session_activity AS a (project_id, session_id, active_at, terms)
  SELECT $1, r.session_id, date_trunc('second', r.updated_at, 'UTC'), i.terms || ${EVERY}
  FROM unnest($2, $3) AS r (session_id, updated_at)
  ${beside('s', 'SELECT o.configs, o.user_id, o.parent_id FROM sessions o WHERE o.project_id = $1 AND o.id = r.session_id')}
  CROSS JOIN LATERAL ${indexTermsText(SESSION_LIST, 's')} AS i;
  INSERT INTO activity_terms AS t (project_id, term, active_at, session_id, signature)
  SELECT $1, x.term, a.active_at, a.session_id, i.signature
  FROM unnest($2) AS r (session_id)
  ${beside('a', 'SELECT o.* FROM session_activity o WHERE o.project_id = $1 AND o.session_id = r.session_id')}
  ${beside('s', 'SELECT o.configs, o.user_id, o.parent_id FROM sessions o WHERE o.project_id = $1 AND o.id = r.session_id')}
  CROSS JOIN LATERAL ${indexTermsText(SESSION_LIST, 's')} AS i
  CROSS JOIN LATERAL unnest(a.terms) AS x (term)`,
)

const LISTING: Listing = {
  ...SESSIONS.listing,
  columns: { ...SESSIONS.listing.columns, listed_at: { sql: 't.listed_at', as: 'time' } },
}

export function listSessionsByActivity(filter: ListFilter, position: ListPosition): ListStatement {
  const direction = directionOf(position)
  const name = 'list_sessions_by_activity'
  const parent = parentFilterOf(filter)
  if (filter.document !== undefined || filter.user !== undefined || parent === 'given') {
    const index = { table: 'activity_terms', at: 'active_at', item_id: 'session_id' }
    return termsPage({ name, list: SESSION_LIST, index, direction, listing: LISTING }, filter, position)
  }
  const condition = parent ? `AND ${hasParentText(parent, 'r', '')}` : ''
  const { order, behind } = direction
  const statement = composedOnce(
    `${name}${parent ? '_of_parent_none' : ''}_${direction.name}`,
    () => `
SELECT ${aggregated(LISTING.columns)}
FROM (
  SELECT t.* FROM (
    SELECT r.*, a.active_at AS listed_at
    FROM {activity_terms} a ${beside('r', `SELECT r.* FROM {sessions} r WHERE r.project_id = $1 AND r.id = a.session_id ${condition}`)}
    WHERE a.project_id = $1 AND a.term = ${EVERY} AND (a.active_at, a.session_id) ${behind} ($2::timestamptz, $3::uuid)
    ORDER BY a.active_at ${order}, a.session_id ${order}
    LIMIT ${PAGE_ROWS_MAX}
  ) t
  ORDER BY t.listed_at ${order}, t.id ${order}
  LIMIT $4
) t`,
    LIMIT_AT,
  )
  return { statement, parameters: listParameters(filter.project_id, position), listing: LISTING }
}

export const SESSIONS_BY_ACTIVITY: FilteredList = {
  ...SESSIONS,
  order: { name: 'sessions by last activity', page: listSessionsByActivity },
}
