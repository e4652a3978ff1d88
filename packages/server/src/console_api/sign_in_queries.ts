import { prepared } from '../postgres/statement.js'

/**
 * A sign-in code is a key without rights that can be exchanged, once, for a console key. Both are rows of api_keys,
 * so every process on the database knows them, and both expire.
 */

/** Parameters: none. */
export const FORGET_EXPIRED_SIGN_INS = prepared(
  'forget_expired_sign_ins',
  `DELETE FROM api_keys AS k WHERE k.origin IN ('sign_in_code', 'console') AND k.expires_at < now()`,
)

/**
 * Uses a code up, so that a second caller does not find it. No row: it is unknown, used or expired. Parameters: $1
 * its SHA-256.
 */
export const TAKE_SIGN_IN_CODE = prepared(
  'take_sign_in_code',
  `DELETE FROM api_keys AS k WHERE k.token_hash = $1 AND k.origin = 'sign_in_code' AND k.expires_at > now()
RETURNING k.project_id`,
)

/** Revokes a console key when its tab signs out. Parameters: $1 project, $2 the key's SHA-256. */
export const END_CONSOLE_KEY = prepared(
  'end_console_key',
  `UPDATE api_keys AS k SET revoked_at = least(k.revoked_at, now())
WHERE k.project_id = $1 AND k.token_hash = $2 AND k.origin = 'console' RETURNING k.id`,
)
