import { prepared } from '@annals/kits/postgres/statement.js'

export const DEVICE_MINUTES_MAX = 10
const SINCE = `now() - interval '${DEVICE_MINUTES_MAX} minutes'`
const SECONDS = 'extract(epoch FROM now())::float8'
/** Between two questions of a command line: one that asks sooner is told to slow down. */
const INTERVAL_S_MIN = 4
/** Somebody may look at 20 codes, and then at one each half a minute: nobody finds those of others by trying. */
const LOOK_S = { each: 30, max: 600 }
/** Command lines that wait at the same time, and of these from one address. */
const WAITING_MAX = { all: 1_000, address: 20 }

export const FORGET_DEVICES = prepared(
  'forget_devices',
  `DELETE FROM device_logins AS d WHERE d.created_at <= ${SINCE}`,
)

/** No row: too many wait. Parameters: $1 its code, $2 hash of its secret, $3 name, $4 address. */
export const ADD_DEVICE = prepared(
  'add_device',
  `INSERT INTO device_logins AS d (user_code, device_hash, name, address, created_at, polled_until, is_decided)
SELECT $1::text, $2::bytea, $3::text, $4::text, now(), ${SECONDS} + ${INTERVAL_S_MIN}, false
WHERE (SELECT count(*) FROM device_logins o) < ${WAITING_MAX.all}
  AND (SELECT count(*) FROM device_logins o WHERE o.address = $4) < ${WAITING_MAX.address}
ON CONFLICT DO NOTHING RETURNING d.user_code`,
)

/** Row: whether somebody has looked at too many codes. Parameters: $1 person. */
export const COUNT_LOOK = prepared(
  'count_look_at_device',
  `UPDATE people AS p SET looks_until = least(greatest(p.looks_until, ${SECONDS}), ${SECONDS} + ${LOOK_S.max}) + ${LOOK_S.each}
WHERE p.id = $1 RETURNING p.looks_until > ${SECONDS} + ${LOOK_S.max} AS is_over`,
)

/** Parameters: $1 code. Row: name, address. */
export const FIND_DEVICE = prepared(
  'find_device',
  `SELECT d.name, d.address FROM device_logins d WHERE d.user_code = $1 AND NOT d.is_decided AND d.created_at > ${SINCE}`,
)

/** Row: nobody had decided. Parameters: $1 code; of whoever approves it $2 member and $3 project, or null. */
export const DECIDE_DEVICE = prepared(
  'decide_device',
  `UPDATE device_logins AS d SET is_decided = true, member_id = $2::uuid, project_id = $3::uuid
WHERE d.user_code = $1 AND NOT d.is_decided AND d.created_at > ${SINCE} RETURNING d.user_code`,
)

/** What was decided, once. Parameters: $1 hash of its secret. Row: member_id and project_id are null if it was refused. */
export const TAKE_DEVICE = prepared(
  'take_device',
  `DELETE FROM device_logins AS d WHERE d.device_hash = $1 AND d.is_decided AND d.created_at > ${SINCE}
RETURNING d.name, d.member_id, d.project_id`,
)

/** No row: nobody decides any more. Parameters: $1 hash of its secret. Row: whether it asks too soon. */
export const POLL_DEVICE = prepared(
  'poll_device',
  `UPDATE device_logins AS d SET polled_until = greatest(d.polled_until, ${SECONDS}) + ${INTERVAL_S_MIN}
WHERE d.device_hash = $1 AND d.created_at > ${SINCE} RETURNING d.polled_until > ${SECONDS} + ${INTERVAL_S_MIN} AS is_early`,
)
