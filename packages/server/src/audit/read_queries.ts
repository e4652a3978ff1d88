import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedInsert } from '@annals/kits/postgres/stored_function.js'

/** Parameters: $1 project. Row: seq of its last row, 0 if there is none. */
export const LAST_READ = prepared(
  'last_read',
  'SELECT coalesce(max(r.seq), 0) AS seq FROM session_reads r WHERE r.project_id = $1',
)

/** Of some sessions, from a minute on. Parameters: $1 project, $2 sessions, $3 minute. Rows: the unique key. */
export const FIND_READS = prepared(
  'find_reads',
  `SELECT r.session_id, ${timestampText('r.read_at')} AS read_at, r.principal_id, r.shown FROM session_reads r
WHERE r.project_id = $1 AND r.session_id = ANY ($2::uuid[]) AND r.read_at >= $3`,
)

/** Parameters: $1 project, $2 seq before the first; of each $3 minute, $4 session, $5 principal, $6 shown, $7 actor. */
export const ADD_READS = storedInsert(
  'add_reads',
  ['bigint', 'timestamptz[]', 'uuid[]', 'uuid[]', 'text[]', 'text[]'],
  `INSERT INTO session_reads AS n (project_id, seq, read_at, session_id, principal_id, shown, actor)
SELECT $1::uuid, $2::bigint + x.place, x.read_at, x.session_id, x.principal_id, x.shown, x.actor
FROM unnest($3::timestamptz[], $4::uuid[], $5::uuid[], $6::text[], $7::text[])
  WITH ORDINALITY AS x(read_at, session_id, principal_id, shown, actor, place)`,
)

const READ_JSON = `json_build_object('seq', r.seq, 'created_at', ${timestampText('r.read_at')}, 'actor', r.actor,
  'action', 'session.read', 'project_id', r.project_id,
  'details', json_build_object('session_id', r.session_id, 'principal_id', r.principal_id, 'shown', r.shown))::text`

function listReads(order: 'asc' | 'desc', of: 'all' | 'one') {
  const after = order === 'asc' ? 'r.seq > $2' : 'r.seq < $2'
  const session = of === 'one' ? 'AND r.session_id = $4' : ''
  return prepared(
    `list_reads_${order}_of_${of}`,
    `SELECT r.seq, ${READ_JSON} AS json FROM session_reads r
WHERE r.project_id = $1 AND ${after} ${session} ORDER BY r.seq ${order === 'asc' ? 'ASC' : 'DESC'} LIMIT $3`,
  )
}

/** Parameters: $1 project, $2 seq, $3 how many; of one session $4 which. Rows: seq, json. */
export const LIST_READS = {
  asc_all: listReads('asc', 'all'),
  asc_one: listReads('asc', 'one'),
  desc_all: listReads('desc', 'all'),
  desc_one: listReads('desc', 'one'),
} as const

/** Whose reads are not kept for ever. Rows: id, days. */
export const FIND_PROJECTS_THAT_FORGET_READS = prepared(
  'find_projects_that_forget_reads',
  'SELECT p.id, p.audit_reads_days AS days FROM projects p WHERE p.audit_reads_days IS NOT NULL ORDER BY p.id',
)

/** Deletes old ones, but never the last, from which the next goes on counting. Parameters: $1 project, $2 days, $3 how many at most. */
export const FORGET_READS = prepared(
  'forget_reads',
  `DELETE FROM session_reads AS r WHERE r.project_id = $1 AND r.read_at < now() - make_interval(days => $2::int)
AND r.seq < (SELECT min(f.seq) + $3::bigint FROM session_reads f WHERE f.project_id = $1)
AND r.seq < (SELECT max(l.seq) FROM session_reads l WHERE l.project_id = $1) RETURNING r.seq`,
)
