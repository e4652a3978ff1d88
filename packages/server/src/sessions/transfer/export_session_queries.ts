import { jsonLine, quoted } from '../../lifecycle/columns.js'
import { timestampText } from '../../lists/resource_json.js'
import { planned } from '../../postgres/statement.js'

function text(expression: string): string {
  return `to_json(${expression})`
}

function timestamp(expression: string): string {
  return quoted(timestampText(expression))
}

/** A session's line, from its row `t`, its head `h` and its user `u`. */
export const SESSION_LINE_SQL = jsonLine({
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
  expires_in_s: 't.expires_in_s',
  parent_id: quoted('t.parent_id'),
  forked_from: quoted('t.forked_from'),
  forked_at_seq: 't.forked_at_seq',
  configs: 't.configs',
})

/** Everything in a row of entries except its project. A retraction behind the exported entries is not exported. */
const ENTRY_LINE = jsonLine(
  {
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
  },
  { key: text('e.key'), retracted_by: 'CASE WHEN e.retracted_by <= e.last_seq THEN e.retracted_by END' },
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
