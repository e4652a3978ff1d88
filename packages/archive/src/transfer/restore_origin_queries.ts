import { planned } from '@annals/kits/postgres/statement.js'

/**
 * What statements of an export that says nothing of it were worded from, as far as the ledger knows: as migration 0032
 * did. Parameters: $1 project.
 */
export const RESTORE_ORIGINS = planned(
  'restore_origins',
  `
UPDATE statements AS s SET origins = o.origins
FROM (
  SELECT c.statement_id, coalesce(jsonb_object_agg(k.session_id::text, true) FILTER (WHERE k.session_id IS NOT NULL), '{}')
    || coalesce(jsonb_object_agg(k.other_session_id::text, true) FILTER (WHERE k.other_session_id IS NOT NULL), '{}') AS origins
  FROM statement_cites c
  JOIN learning_calls k ON k.project_id = $1 AND k.learning_space_id = c.learning_space_id AND k.step = 'reflect'
    AND (k.session_id = c.session_id OR k.other_session_id = c.session_id)
  WHERE c.project_id = $1 AND c.is_origin GROUP BY c.statement_id
) o
WHERE s.project_id = $1 AND s.id = o.statement_id AND s.origins IS NULL AND s.author = 'model' AND NOT s.pinned
  AND s.state <> 'revoked'`,
)
