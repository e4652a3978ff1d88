import sql, { empty, join, raw } from 'sql-template-tag'
import type { ListStatement } from '../../lists/keyset_queries.js'
import { timestampText } from '../../lists/resource_json.js'
import { planned, prepared } from '../../postgres/statement.js'

/**
 * Reads a project for an export. Each row's column `line` is the line of the export as PostgreSQL writes it: callers'
 * JSON goes from jsonb to the file as text, so no digit is lost.
 */

/** The members of a line, each an SQL expression that returns JSON or null. */
function line(members: Record<string, string>): string {
  const pieces = Object.entries(members).map(
    ([name, json], index) => `'${index === 0 ? '{' : ','}"${name}":', coalesce((${json})::text, 'null')`,
  )
  return `concat(${pieces.join(', ')}, '}')`
}

function quoted(expression: string): string {
  return `'"' || ${expression} || '"'`
}

function text(expression: string): string {
  return `to_json(${expression})`
}

function timestamp(expression: string): string {
  return quoted(timestampText(expression))
}

const USER_LINE = line({
  kind: `'"user"'`,
  id: quoted('t.id'),
  identifier: text('t.identifier'),
  created_at: timestamp('t.created_at'),
  updated_at: timestamp('t.updated_at'),
})

const OWNED_LINES = {
  learning_spaces: line({
    kind: `'"learning_space"'`,
    id: quoted('t.id'),
    user_id: quoted('t.user_id'),
    user: text('u.identifier'),
    created_at: timestamp('t.created_at'),
    updated_at: timestamp('t.updated_at'),
    meta: 't.meta',
  }),
  sessions: line({
    kind: `'"session"'`,
    id: quoted('t.id'),
    user_id: quoted('t.user_id'),
    user: text('u.identifier'),
    disable_task_tracking: 't.disable_task_tracking',
    created_at: timestamp('t.created_at'),
    updated_at: timestamp('h.updated_at'),
    last_seq: 'h.last_seq',
    total_tokens: 'h.total_tokens',
    last_message_id: quoted('h.last_message_id'),
    configs: 't.configs',
  }),
} as const

/** Everything in a row of entries except its project; nulls stay null. */
const ENTRY_LINE = line({
  kind: text('e.kind'),
  session_id: quoted('e.session_id'),
  seq: 'e.seq',
  id: quoted('e.id'),
  parent_id: quoted('e.parent_id'),
  created_at: timestamp('e.created_at'),
  updated_at: timestamp('e.updated_at'),
  bytes: 'e.bytes',
  tokens: 'e.tokens',
  type: text('e.type'),
  role: text('e.role'),
  format: text('e.format'),
  meta: 'e.meta',
  patched_meta: 'e.patched_meta',
  data: 'e.data',
})

/** A page of a project's users in order of their ids; only one user if `identifier` is given. Rows: id, line. */
export function exportUsers(page: {
  project_id: string
  identifier: string | undefined
  /** The last id of the previous page. */
  after: string | undefined
  limit: number
}): ListStatement {
  const conditions = [sql`t.project_id = ${page.project_id}`]
  if (page.identifier !== undefined) conditions.push(sql`t.identifier = ${page.identifier}`)
  if (page.after !== undefined) conditions.push(sql`t.id > ${page.after}::uuid`)
  const query = sql`
SELECT t.id, ${raw(USER_LINE)} AS line FROM users t WHERE ${join(conditions, ' AND ')} ORDER BY t.id LIMIT ${page.limit}`
  return { statement: planned('export_users', query.text), parameters: query.values as string[] }
}

/** A row's position in the page's order. */
export interface OwnedPosition {
  user_id: string | null
  created_at: string
  id: string
}

/**
 * A page of what the users in a range of ids own, or of what has no user (`range` undefined), in the order of
 * (user_id, created_at, id), which is that of an index. Rows: user_id, created_at, id, last_seq (sessions), line.
 */
export function exportOwned(
  table: keyof typeof OWNED_LINES,
  page: {
    project_id: string
    range: { first: string; last: string } | undefined
    after: OwnedPosition | undefined
    limit: number
  },
): ListStatement {
  const { project_id, range, after } = page
  const owned = range
    ? sql`t.user_id >= ${range.first}::uuid AND t.user_id <= ${range.last}::uuid`
    : sql`t.user_id IS NULL`
  const behind = !after
    ? empty
    : range
      ? sql`AND (t.user_id, t.created_at, t.id) > (${after.user_id}::uuid, ${after.created_at}::timestamptz, ${after.id}::uuid)`
      : sql`AND (t.created_at, t.id) > (${after.created_at}::timestamptz, ${after.id}::uuid)`
  const heads =
    table === 'sessions'
      ? sql`JOIN session_heads h ON h.project_id = ${project_id} AND h.session_id = t.id`
      : empty
  const order = raw('ORDER BY t.user_id, t.created_at, t.id')
  const query = sql`
SELECT t.user_id, ${raw(timestampText('t.created_at'))} AS created_at, t.id,
  ${raw(table === 'sessions' ? 'h.last_seq, ' : '')}${raw(OWNED_LINES[table])} AS line
FROM (
  SELECT t.* FROM ${raw(table)} t WHERE t.project_id = ${project_id} AND ${owned} ${behind} ${order} LIMIT ${page.limit}
) t
${heads}
LEFT JOIN users u ON u.project_id = ${project_id} AND u.id = t.user_id
${order}`
  return { statement: planned(`export_${table}`, query.text), parameters: query.values as string[] }
}

/** One session. Parameters: $1 project, $2 session. Rows: user (the identifier), user_id, id, last_seq, line. */
export const EXPORT_SESSION = prepared(
  'export_session',
  `
SELECT u.identifier AS user, t.user_id, t.id, h.last_seq, ${OWNED_LINES.sessions} AS line
FROM sessions t
JOIN session_heads h ON h.project_id = $1 AND h.session_id = t.id
LEFT JOIN users u ON u.project_id = $1 AND u.id = t.user_id
WHERE t.project_id = $1 AND t.id = $2`,
)

/**
 * Entries of several sessions, each from one seq to another, in that order. They end before the entry with which
 * their JSON would exceed a number of bytes, but there is at least one. Rows: ord (of the session, from 1), seq,
 * line. Parameters: $1 project; one element per session: $2 session, $3 seq to start after, $4 last seq; $5 bytes.
 */
export const EXPORT_ENTRIES = planned(
  'export_entries',
  `
SELECT e.ord, e.seq, ${ENTRY_LINE} AS line
FROM (
  SELECT w.ord, e.*, sum(e.bytes) OVER (ORDER BY w.ord, e.seq ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
  FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS w (session_id, behind, until, ord)
  JOIN entries e
    ON e.project_id = $1 AND e.session_id = w.session_id AND e.seq > w.behind AND e.seq <= w.until
) e
WHERE e.bytes_before < $5
ORDER BY e.ord, e.seq`,
)

/** The expected size of an export, for its progress. Parameters: $1 project, $2 user's id. Row: sessions, entries. */
export const MEASURE_EXPORT = {
  project: prepared(
    'measure_project_export',
    'SELECT count(*) AS sessions, coalesce(sum(h.last_seq), 0) AS entries FROM session_heads h WHERE h.project_id = $1',
  ),
  user: prepared(
    'measure_user_export',
    `SELECT count(*) AS sessions, coalesce(sum(h.last_seq), 0) AS entries
FROM sessions s JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.user_id = $2`,
  ),
} as const
