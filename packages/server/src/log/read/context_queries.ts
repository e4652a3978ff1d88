import { prepared } from '../../postgres/statement.js'

/**
 * The newest instructions of a session, as far as they have no more bytes than allowed, newest first.
 * Parameters: $1 project, $2 session, $3 number allowed, $4 bytes allowed.
 */
export const READ_INSTRUCTIONS = prepared(
  'read_instructions',
  `
SELECT i.seq, i.id, i.parent_id, i.format, i.tokens, i.data::text AS json
FROM (
  SELECT e.seq, e.id, e.parent_id, e.format, e.tokens, e.data, sum(e.bytes) OVER (ORDER BY e.seq DESC) AS bytes
  FROM (
    SELECT e.seq, e.id, e.parent_id, e.format, e.tokens, e.data, e.bytes
    FROM entries e
    WHERE e.project_id = $1 AND e.session_id = $2 AND e.kind = 'message' AND e.retracted_by IS NULL
      AND coalesce(e.data #>> '{meta,provider_role}', e.data ->> 'role') IN ('system', 'developer')
    ORDER BY e.seq DESC
    LIMIT $3
  ) e
) i
WHERE i.bytes <= $4
ORDER BY i.seq DESC`,
)
