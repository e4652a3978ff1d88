import { planned } from '@annals/kits/postgres/statement.js'

/** How many of the lines' users do not exist. Parameters: $1 project, $2 lines. */
export const COUNT_NEW_USERS = planned(
  'count_new_users',
  `
SELECT count(*) AS stored FROM jsonb_array_elements($2::jsonb) AS l
WHERE NOT EXISTS (SELECT FROM users k WHERE k.project_id = $1 AND k.identifier = l ->> 'identifier' OFFSET 0)`,
)

/**
 * Users by identifier: an existing one is left unchanged; a new one keeps its id unless another user has it.
 * Parameters: $1 project, $2 lines.
 */
export const RESTORE_USERS = planned(
  'restore_users',
  `
WITH given AS MATERIALIZED (
  SELECT (l ->> 'id')::uuid AS id, l ->> 'identifier' AS identifier, (l ->> 'created_at')::timestamptz AS created_at,
    (l ->> 'updated_at')::timestamptz AS updated_at
  FROM jsonb_array_elements($2::jsonb) AS l
), made AS (
  INSERT INTO users AS u (project_id, id, identifier, created_at, updated_at)
  SELECT $1, CASE WHEN taken.id IS NULL THEN g.id ELSE md5(g.id::text || g.identifier)::uuid END, g.identifier,
    g.created_at, g.updated_at
  FROM given g
  LEFT JOIN LATERAL (SELECT k.id FROM users k WHERE k.project_id = $1 AND k.id = g.id OFFSET 0) taken ON true
  WHERE NOT EXISTS (SELECT FROM users k WHERE k.project_id = $1 AND k.identifier = g.identifier OFFSET 0)
  ORDER BY g.identifier
  ON CONFLICT (project_id, identifier) DO NOTHING
  RETURNING u.id
)
SELECT count(*) AS stored FROM made`,
)
