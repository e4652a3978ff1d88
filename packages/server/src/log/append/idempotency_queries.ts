import { prepared } from '../../postgres/statement.js'

/** A key's first answer; none yet while a long copy is being made. Parameters: $1 project, $2 key. */
export const FIND_IDEMPOTENCY_KEY = prepared(
  'find_idempotency_key',
  'SELECT k.request_hash, k.answer, k.owner_id FROM idempotency_keys k WHERE k.project_id = $1 AND k.key = $2',
)

/**
 * Deletes a bounded number of a project's keys that are older than promised. Parameters: $1 project, $2 age in hours,
 * $3 how many at most.
 */
export const FORGET_IDEMPOTENCY_KEYS = prepared(
  'forget_idempotency_keys',
  `
DELETE FROM idempotency_keys AS k
WHERE k.project_id = $1 AND k.key = ANY (ARRAY(
  SELECT o.key FROM idempotency_keys o
  WHERE o.project_id = $1 AND o.created_at < now() - make_interval(hours => $2)
  LIMIT $3))
RETURNING k.key`,
)

/** Steps of a stored function that store `answer` for the key in `p_key`, if there is one. `owner`: whose key it is. */
export function rememberAnswer(owner: string): string {
  return `
  IF p_key IS NOT NULL THEN
    INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, answer)
    VALUES (p_project, p_key, p_request_hash, ${owner}, now(), answer);
  END IF;`
}
