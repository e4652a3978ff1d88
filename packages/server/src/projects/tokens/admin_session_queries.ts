import { CONSOLE_IDLE_HOURS_MAX, CONSOLE_SESSION_DAYS_MAX } from '../../limits.js'
import { prepared } from '../../postgres/statement.js'

/** Until when a session of the administrator that began at a time stays open, if it is not used any more. */
const untilIdle = (began: string) =>
  `least(now() + interval '${CONSOLE_IDLE_HOURS_MAX} hours', ${began} + interval '${CONSOLE_SESSION_DAYS_MAX} days')`

/** Parameters: $1 id. */
export const BEGIN_ADMIN_SESSION = prepared(
  'begin_admin_session',
  `INSERT INTO admin_sessions (id, expires_at) VALUES ($1, ${untilIdle('now()')})`,
)

export const FORGET_EXPIRED_ADMIN_SESSIONS = prepared(
  'forget_expired_admin_sessions',
  'DELETE FROM admin_sessions AS a WHERE a.expires_at < now()',
)

/** A row if the session is open. Parameters: $1 id. */
export const FIND_ADMIN_SESSION = prepared(
  'find_admin_session',
  'SELECT a.id FROM admin_sessions a WHERE a.id = $1 AND a.expires_at > now()',
)

/** The same, and puts off its end. */
export const RENEW_ADMIN_SESSION = prepared(
  'renew_admin_session',
  `UPDATE admin_sessions AS a SET expires_at = ${untilIdle('a.created_at')}
WHERE a.id = $1 AND a.expires_at > now() RETURNING a.id`,
)

export const END_ADMIN_SESSION = prepared(
  'end_admin_session',
  'DELETE FROM admin_sessions AS a WHERE a.id = $1',
)
