import { CONSOLE_IDLE_HOURS_MAX, CONSOLE_SESSION_DAYS_MAX } from '../limits.js'
import { prepared } from '../postgres/statement.js'

/**
 * A sign-in code is a key without rights that can be exchanged, once, for a session of the console. A session is a key
 * too, so that every process on the database knows it, and it ends like one.
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

/** Puts off the end of a session that is used. In UTC, since Citus takes no function of a column that a time zone changes. Parameters: $1 project, $2 its SHA-256. */
export const RENEW_SESSION = prepared(
  'renew_console_session',
  `UPDATE api_keys AS k
SET expires_at = least(now() + interval '${CONSOLE_IDLE_HOURS_MAX} hours', (k.created_at AT TIME ZONE 'UTC' + interval '${CONSOLE_SESSION_DAYS_MAX} days') AT TIME ZONE 'UTC')
WHERE k.project_id = $1 AND k.token_hash = $2 AND k.origin = 'console' AND k.revoked_at IS NULL AND k.expires_at > now()
RETURNING k.id`,
)

/** Ends a session. Parameters: $1 project, $2 its SHA-256. */
export const END_SESSION = prepared(
  'end_console_session',
  `UPDATE api_keys AS k SET revoked_at = least(k.revoked_at, now())
WHERE k.project_id = $1 AND k.token_hash = $2 AND k.origin = 'console' RETURNING k.id`,
)
