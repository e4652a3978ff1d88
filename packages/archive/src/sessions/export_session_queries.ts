import { planned } from '@annals/kits/postgres/statement.js'
import { jsonLine, lineSql, memberSql, quoted } from '../columns.js'
import { ENTRY, OF_HEAD, SESSION_LINE } from './session_lines.js'

/** A session's line, from its row `t`, its head `h` and its user `u`. */
export const SESSION_LINE_SQL = lineSql('session', SESSION_LINE, OF_HEAD)

/** A retraction after the exported entries is not exported. */
const ENTRY_LINE = jsonLine(
  {
    kind: 'to_json(e.kind)',
    ...Object.fromEntries(
      Object.entries(ENTRY).map(([name, column]) => [name, memberSql(`e.${name}`, column)]),
    ),
  },
  {
    key: 'to_json(e.key)',
    occurred_at: memberSql('e.occurred_at', 'time'),
    proof: quoted("encode(e.proof, 'hex')"),
    retracted_by: 'CASE WHEN e.retracted_by <= e.last_seq THEN e.retracted_by END',
  },
)

/**
 * Entries of several sessions, each from one seq to another, in that order. They end before the entry with which
 * their JSON would exceed a number of bytes, but there is at least one. Rows: ord (of the session, from 1), seq,
 * line. Parameters: $1 project; one element per session: $2 session, $3 seq to start after, $4 to end with, $5 last seq
 * of its export; $6 bytes.
 */
export const EXPORT_ENTRIES = planned(
  'export_entries',
  `
SELECT e.ord, e.seq, ${ENTRY_LINE} AS line
FROM (
  SELECT w.ord, w.last_seq, e.*, sum(e.bytes) OVER (ORDER BY w.ord, e.seq ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
  FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS w (session_id, behind, until, last_seq, ord)
  JOIN entries e
    ON e.project_id = $1 AND e.session_id = w.session_id AND e.seq > w.behind AND e.seq <= w.until
) e
WHERE e.bytes_before < $6
ORDER BY e.ord, e.seq`,
)

/**
 * Sessions whose deletion is under way: what belonged to them or was below them may be in the export still. Rows:
 * session_id, line. Parameters: $1 project, $2 identifier of a user with sessions below them, or null for all,
 * $3 id to begin after or null, $4 how many.
 */
export const EXPORT_ERASED = planned(
  'export_erased_sessions',
  `
SELECT x.session_id, ${jsonLine({ kind: `'"erased_session"'`, session_id: quoted('x.session_id') })} AS line
FROM erased_sessions x
WHERE x.project_id = $1 AND x.leased_until IS NULL AND ($3::uuid IS NULL OR x.session_id > $3::uuid)
  AND ($2::text IS NULL OR EXISTS (
    SELECT FROM sessions s JOIN users u ON u.project_id = $1 AND u.id = s.user_id
    WHERE s.project_id = $1 AND s.parent_id = x.session_id AND u.identifier = $2::text))
ORDER BY x.session_id LIMIT $4`,
)

/** Ids of sessions in a range of ids, the first two. Parameters: $1 project, $2 from, $3 to. */
export const SESSIONS_BETWEEN = planned(
  'export_sessions_between',
  'SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.id >= $2::uuid AND s.id <= $3::uuid ORDER BY s.id LIMIT 2',
)
