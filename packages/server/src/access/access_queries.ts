import { prepared } from '@annals/kits/postgres/statement.js'
import { API_KEY_COLUMNS, IS_LIVE_KEY, KEYS_AND_OWNERS } from '../projects/project_queries.js'

/** The hours for which a key verifies after it was replaced: longer than any token lives. */
const VERIFIES_HOURS = 25

const VERIFIES = `(k.replaced_at IS NULL OR k.replaced_at > now() - interval '${VERIFIES_HOURS} hours')`

export const LIST_SIGNING_KEYS = prepared(
  'list_signing_keys',
  `SELECT k.generation, k.installation, k.secret::text AS secret, k.replaced_at IS NULL AS signs FROM signing_keys k
WHERE ${VERIFIES} ORDER BY k.generation`,
)

/** Another node may have added it already. Parameters: $1 installation, $2 the key as a JWK. */
export const ADD_FIRST_SIGNING_KEY = prepared(
  'add_first_signing_key',
  `INSERT INTO signing_keys AS n (generation, installation, secret)
SELECT coalesce(max(o.generation), 0) + 1, $1::uuid, $2::jsonb FROM signing_keys o
HAVING count(*) FILTER (WHERE o.replaced_at IS NULL) = 0
ON CONFLICT (generation) DO NOTHING`,
)

/** Row: its generation. Parameters: $1 installation if there is none yet, $2 the key as a JWK. */
export const ADD_SIGNING_KEY = prepared(
  'add_signing_key',
  `INSERT INTO signing_keys AS n (generation, installation, secret)
SELECT coalesce(max(o.generation), 0) + 1, coalesce((array_agg(o.installation))[1], $1::uuid), $2::jsonb
FROM signing_keys o
RETURNING n.generation`,
)

/** Parameters: $1 the generation that signs from now on, $2 whether older ones verify no more. */
export const REPLACE_SIGNING_KEYS = prepared(
  'replace_signing_keys',
  `UPDATE signing_keys AS k SET replaced_at = CASE WHEN $2::boolean THEN '-infinity' ELSE coalesce(k.replaced_at, now()) END
WHERE k.generation < $1::int`,
)

export const FORGET_SIGNING_KEYS = prepared(
  'forget_signing_keys',
  `DELETE FROM signing_keys AS k WHERE NOT ${VERIFIES}`,
)

export const FIND_PARENT_KEY = prepared(
  'find_parent_key',
  `SELECT ${API_KEY_COLUMNS} FROM ${KEYS_AND_OWNERS} WHERE k.id = $1 AND ${IS_LIVE_KEY}`,
)

/** Parameters: $1 project, $2 session. */
export const HAS_SESSION = prepared(
  'has_session',
  'SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.id = $2',
)

/** Parameters: $1 project, $2 session, $3 user's identifier. */
export const IS_OF_USER = prepared(
  'is_session_of_user',
  `SELECT s.id FROM sessions s JOIN users u ON u.project_id = $1 AND u.id = s.user_id
WHERE s.project_id = $1 AND s.id = $2 AND u.identifier = $3`,
)

/** Whether a session stands below another, at any depth. Parameters: $1 project, $2 session, $3 the other. */
export const IS_BELOW = prepared(
  'is_session_below',
  `WITH RECURSIVE above (id, parent_id, depth) AS (
  SELECT s.id, s.parent_id, 1 FROM sessions s WHERE s.project_id = $1 AND s.id = $2
  UNION ALL
  SELECT s.id, s.parent_id, a.depth + 1 FROM above a JOIN sessions s ON s.project_id = $1 AND s.id = a.parent_id
  WHERE a.parent_id <> $3 AND a.depth < 1000
)
SELECT a.id FROM above a WHERE a.parent_id = $3 LIMIT 1`,
)

/** The sessions of a user, or below another, by what $6 says. */
const REACHED = {
  user: `
    SELECT s.id FROM users u JOIN sessions s ON s.project_id = $1 AND s.user_id = u.id
    WHERE u.project_id = $1 AND u.identifier = $6`,
  parent: `
    WITH RECURSIVE below (id) AS (
      SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.parent_id = $6::uuid
      UNION
      SELECT s.id FROM below b JOIN sessions s ON s.project_id = $1 AND s.parent_id = b.id
    )
    SELECT b.id FROM below b`,
} as const

/** What the sessions of a list have in common. */
export type ReachedBy = keyof typeof REACHED | 'session_id'

/** Which rows `t` of a scanned list are within a reach, and what it reads first to know that: the sessions that have such rows. */
export function reachedRows(reach: ReachedBy | undefined, table: string, which: string) {
  if (reach === undefined) return {}
  if (reach === 'session_id') return { only: 't.session_id = $6::uuid' }
  const first = `SELECT ARRAY(
  SELECT s.id FROM (${REACHED[reach]}) s
  WHERE EXISTS (SELECT FROM ${table} t WHERE t.project_id = $1 AND t.session_id = s.id AND ${which} OFFSET 0)) AS ids`
  return { only: 't.session_id = ANY ((SELECT f.ids FROM first f)::uuid[])', first }
}

/** Rows: sha256, of blobs that entries of a session refer to. Parameters: $1 project, $2 session, $3 hashes. */
export const FIND_OWN_BLOBS = prepared(
  'find_own_blobs',
  `SELECT r.sha256 FROM blob_references r
WHERE r.project_id = $1 AND r.owner_id = $2 AND r.sha256 = ANY ($3::text[])`,
)
