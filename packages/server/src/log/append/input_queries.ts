import { PIECE_BYTES_MAX } from '../../limits.js'
import { prepared } from '../../postgres/statement.js'

/** What appends know of runs: see migrations/0035_runs.sql. Parameters of each: $1 project. */

/** $2 sessions. Rows: session_id, fence, requires_fence. */
export const FIND_FENCES = prepared(
  'find_fences',
  `SELECT h.session_id, coalesce(h.fence, 0) AS fence, coalesce(h.requires_fence, false) AS requires_fence
FROM session_heads h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])`,
)

/** $2 session, $3 inputs. Rows: id, state: pending, or in words what became of it. */
export const FIND_INPUT_STATES = prepared(
  'find_input_states',
  `
SELECT i.id, CASE WHEN i.withdrawn_at IS NOT NULL THEN 'was withdrawn' WHEN i.expires_at <= now() THEN 'has expired' ELSE 'pending' END AS state
FROM session_inbox i WHERE i.project_id = $1 AND i.session_id = $2 AND i.id = ANY ($3::uuid[])
UNION ALL
SELECT e.id, 'was applied: it is entry ' || e.seq
FROM unnest($3::uuid[]) AS x (id) CROSS JOIN LATERAL (
  SELECT e.id, e.seq FROM entries e WHERE e.project_id = $1 AND e.session_id = $2 AND e.id = x.id LIMIT 1
) e`,
)

/** What becomes of pending inputs. $2 session, $3 inputs. `data` is null where they are longer than a piece together. */
export const READ_INPUTS = prepared(
  'read_inputs',
  `
SELECT i.id, i.entry_kind AS kind, i.type, i.key, i.role, i.format, i.bytes, i.tokens, i.meta::text AS meta,
  CASE WHEN i.through = i.bytes OR i.through <= ${PIECE_BYTES_MAX} THEN i.data::text END AS data
FROM (
  SELECT i.*, sum(i.bytes) OVER (ORDER BY i.place) AS through FROM session_inbox i
  WHERE i.project_id = $1 AND i.session_id = $2 AND i.id = ANY ($3::uuid[]) AND i.withdrawn_at IS NULL
    AND (i.expires_at IS NULL OR i.expires_at > now())
) i`,
)
