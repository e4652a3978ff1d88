import { prepared } from '@annals/kits/postgres/statement.js'
import { storedInsert } from '@annals/kits/postgres/stored_function.js'

/**
 * Row: the session is there, and nobody else numbers its masks until the transaction ends. Parameters: $1 project,
 * $2 session.
 */
export const HOLD_SESSION = prepared(
  'hold_session_for_masks',
  'SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2 FOR NO KEY UPDATE',
)

/**
 * Row: the numbers of these values, with commas between; 0 is none. One row, since there may be thousands. Parameters:
 * $1 project, $2 session; of each value $3 name, $4 digest.
 */
export const FIND_MASKS = prepared(
  'find_masks',
  `SELECT string_agg(coalesce(m.number, 0)::text, ',' ORDER BY x.place) AS numbers
FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS x(name, digest, place)
LEFT JOIN LATERAL (
  SELECT k.number FROM redaction_masks k
  WHERE k.project_id = $1 AND k.session_id = $2 AND k.name = x.name AND k.digest = x.digest
) m ON true`,
)

/** Rows: the last number of each name. Parameters: $1 project, $2 session, $3 names. */
export const LAST_MASKS = prepared(
  'last_masks',
  `SELECT x.name, coalesce(m.number, 0) AS number
FROM unnest($3::text[]) AS x(name)
LEFT JOIN LATERAL (
  SELECT l.number FROM redaction_masks l
  WHERE l.project_id = $1 AND l.session_id = $2 AND l.name = x.name ORDER BY l.number DESC LIMIT 1
) m ON true`,
)

/** Parameters: $1 project, $2 session; of each $3 name, $4 number, $5 digest. */
export const ADD_MASKS = storedInsert(
  'add_masks',
  ['uuid', 'text[]', 'bigint[]', 'text[]'],
  `INSERT INTO redaction_masks AS n (project_id, session_id, name, number, digest)
SELECT $1, $2, x.name, x.number, x.digest FROM unnest($3::text[], $4::bigint[], $5::text[]) AS x(name, number, digest)`,
)

/** The secret stays as it is, whatever becomes of the rules. Parameters: $1 project, $2 rules or null, $3 a first secret. */
export const SET_RULES = prepared(
  'set_redaction_rules',
  `UPDATE projects AS p SET redaction =
  jsonb_build_object('rules', $2::jsonb, 'secret', coalesce(p.redaction ->> 'secret', $3::text))
WHERE p.id = $1 RETURNING p.id`,
)

/** Parameters: $1 project. */
export const READ_RULES = prepared(
  'read_redaction_rules',
  `SELECT (p.redaction -> 'rules')::text AS rules FROM projects p WHERE p.id = $1`,
)
