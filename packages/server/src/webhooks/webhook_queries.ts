import { timestampText } from '@annals/kits/lists/resource_json.js'
import { askingEveryProject, planned, prepared } from '@annals/kits/postgres/statement.js'
import { storedInsert } from '@annals/kits/postgres/stored_function.js'
import { inputJson, isPendingText, REQUEST_TYPE } from '../runs/run_queries.js'

/** Webhooks: see migrations/0020_webhooks.sql. Parameters of each: $1 project. */

/** Switches the consumer on for good, and lets one creation at a time through. $2 consumer. Row: one unless it is being taken apart. */
export const KEEP_CONSUMER = prepared(
  'keep_consumer_on',
  `UPDATE project_consumers AS c SET used_at = 'infinity'
WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NULL RETURNING c.consumer`,
)

/** The last webhook is gone: a month later the consumer is taken apart, if there is none again. $2 consumer. */
export const LEAVE_CONSUMER = prepared(
  'leave_consumer',
  `UPDATE project_consumers AS c SET used_at = now()
WHERE c.project_id = $1 AND c.consumer = $2 AND c.retired_at IS NULL
  AND NOT EXISTS (SELECT FROM webhooks w WHERE w.project_id = $1)`,
)

export const COUNT_WEBHOOKS = prepared(
  'count_webhooks',
  'SELECT count(*) AS webhooks FROM webhooks w WHERE w.project_id = $1',
)

const FIELDS = `'id', w.id, 'url', w.url, 'events', w.events, 'created_at', ${timestampText('w.created_at')}`

export const CREATE_WEBHOOK = prepared(
  'create_webhook',
  `INSERT INTO webhooks AS w (project_id, id, url, events, secret, created_at, given_up)
VALUES ($1, $2, $3, $4, $5, now(), 0)`,
)

export const READ_NEW_WEBHOOK = prepared(
  'read_new_webhook',
  `SELECT json_build_object(${FIELDS}, 'secret', w.secret)::text AS json FROM webhooks w WHERE w.project_id = $1 AND w.id = $2`,
)

/** Rows: json, without the secrets, oldest first. */
export const LIST_WEBHOOKS = prepared(
  'list_webhooks',
  `
SELECT json_build_object(${FIELDS}, 'waiting_sessions', (
    SELECT count(*) FROM (
      SELECT FROM webhook_deliveries d WHERE d.project_id = $1 AND d.webhook_id = w.id LIMIT 1000
    ) d
  ), 'last_error', w.last_error, 'last_error_at', ${timestampText('w.last_error_at')}, 'given_up', w.given_up)::text AS json
FROM webhooks w WHERE w.project_id = $1 ORDER BY w.created_at, w.id`,
)

export const DELETE_WEBHOOK = prepared(
  'delete_webhook',
  'DELETE FROM webhooks AS w WHERE w.project_id = $1 AND w.id = $2 RETURNING w.id',
)

/** How far sessions are with webhooks: see migrations/0020_webhooks.sql. */

/** Entries that one statement looks at. */
const LOOKED_AT_MAX = 1_000
/** A day after it was stored, an entry is given up when an attempt fails. */
const GIVEN_UP_AFTER = "interval '1 day'"

/** SQL: whether the consumer has not seen a session with head `h`, which was written to since the project had a webhook. */
export const WEBHOOKS_ARE_BEHIND = `h.updated_at >= (SELECT min(w.created_at) FROM webhooks w WHERE w.project_id = $1)
  AND h.last_seq > coalesce((
    SELECT u.seq FROM change_cursors u WHERE u.project_id = $1 AND u.consumer = $2 AND u.session_id = h.session_id), 0)`

/**
 * The database's clock has been set back if a webhook was created later than now: what is stored from here on would seem
 * to be older than it. Row then: at, before which nothing of these sessions is new. Parameters: $1 project, $2 consumer, $3 sessions.
 */
export const FIND_CLOCK_SET_BACK = prepared(
  'find_clock_set_back',
  `SELECT ${timestampText('least(now(), min(c.marked_at))')} AS at FROM change_marks c
WHERE c.project_id = $1 AND c.consumer = $2 AND c.session_id = ANY ($3::uuid[])
  AND EXISTS (SELECT FROM webhooks w WHERE w.project_id = $1 AND w.created_at > now()) HAVING count(*) > 0`,
)

/** Such webhooks were created then, by the clock that holds now. Parameters: $1 project, $2 that time. */
export const FOLLOW_CLOCK = prepared(
  'follow_clock',
  `UPDATE webhooks AS w SET created_at = $2::timestamptz
WHERE w.project_id = $1 AND w.created_at > $2::timestamptz AND w.created_at > now()`,
)

/**
 * Tells all webhooks of a project of sessions with new entries. Parameters: $1 project, $2 sessions, $3 the seqs seen
 * before, $4 and now. Answer: the ids of the webhooks, separated by commas.
 */
export const ADD_DELIVERIES = storedInsert(
  'add_webhook_deliveries',
  ['uuid[]', 'bigint[]', 'bigint[]'],
  `INSERT INTO webhook_deliveries AS d (project_id, webhook_id, session_id, delivered_seq, through_seq, attempts, not_before)
SELECT $1, w.id, r.session_id, r.after_seq, r.last_seq, 0, now()
FROM webhooks w CROSS JOIN unnest($2, $3, $4) AS r (session_id, after_seq, last_seq)
WHERE w.project_id = $1 AND r.last_seq > r.after_seq
ORDER BY w.id, r.session_id
ON CONFLICT (project_id, webhook_id, session_id) DO UPDATE SET through_seq = greatest(d.through_seq, excluded.through_seq)`,
  `(SELECT string_agg(w.id::text, ',') FROM webhooks w
    WHERE w.project_id = $1 AND EXISTS (SELECT FROM unnest($3, $4) AS r (after_seq, last_seq) WHERE r.last_seq > r.after_seq))`,
)

/**
 * Where something is due, of all projects: for each webhook one look into the index, however many sessions wait for a
 * receiver that is away. Rows: project_id, webhook_id.
 */
export const FIND_DUE_WEBHOOKS = askingEveryProject(
  planned,
  'find_due_webhooks',
  `SELECT w.project_id, w.id AS webhook_id FROM {webhooks} w
WHERE EXISTS (
  SELECT FROM {webhook_deliveries} d WHERE d.project_id = w.project_id AND d.webhook_id = w.id AND d.not_before <= now())`,
)

/** Takes up a session that is due. Parameters: $1 project, $2 webhook, $3 lease, $4 its seconds. */
export const LEASE_DELIVERY = prepared(
  'lease_webhook_delivery',
  `
WITH due AS MATERIALIZED (
  SELECT o.session_id FROM webhook_deliveries o WHERE o.project_id = $1 AND o.webhook_id = $2 AND o.not_before <= now()
  ORDER BY o.not_before LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE webhook_deliveries AS d SET lease = $3, not_before = now() + make_interval(secs => $4)
FROM due x WHERE d.project_id = $1 AND d.webhook_id = $2 AND d.session_id = x.session_id
RETURNING d.session_id, d.delivered_seq, d.through_seq, d.attempts, d.input_session`,
)

/** SQL: whether an entry is a request that a webhook `w` wants as one. */
const isRequest = (e: string) =>
  `(${e}.kind = 'event' AND ${e}.type = '${REQUEST_TYPE}' AND 'request.opened' = ANY (w.events))`

/**
 * The next entry that a webhook is to be told of, among the next ones of a session. Parameters: $1 project, $2 webhook,
 * $3 session, $4 seq to begin after, $5 last seq. Row: url, secret, reached_seq (up to where was looked), and of the
 * entry seq, kind, type and bytes, or nulls. No row if the webhook is gone.
 */
export const FIND_NEXT_ENTRY = prepared(
  'find_webhook_entry',
  `
SELECT w.url, w.secret, least($5, $4::bigint + ${LOOKED_AT_MAX}) AS reached_seq, e.seq, e.kind, e.bytes,
  CASE WHEN ${isRequest('e')} THEN 'request.opened' WHEN e.kind = 'event' THEN 'event.' || e.type ELSE e.kind END AS type
FROM webhooks w LEFT JOIN LATERAL (
  SELECT i.seq, i.kind, i.type, i.bytes FROM entries i
  WHERE i.project_id = $1 AND i.session_id = $3 AND i.seq > $4::bigint AND i.seq <= least($5, $4::bigint + ${LOOKED_AT_MAX})
    AND i.created_at >= w.created_at AND (i.kind = ANY (w.events) OR i.kind || '.' || i.type = ANY (w.events) OR ${isRequest('i')})
  ORDER BY i.seq LIMIT 1
) e ON true
WHERE w.project_id = $1 AND w.id = $2`,
)

/**
 * An input that a webhook is to be told of. Parameters: $1 project, $2 webhook, $3 session, $4 input. Row: url, secret, json,
 * bytes; none if the webhook is gone, or if the input is no longer pending.
 */
export const FIND_INPUT = prepared(
  'find_webhook_input',
  `
SELECT w.url, w.secret, ${inputJson('i')} AS json, i.bytes
FROM webhooks w JOIN session_inbox i ON i.project_id = $1 AND i.session_id = $3 AND i.id = $4
WHERE w.project_id = $1 AND w.id = $2 AND ${isPendingText('i')}`,
)

const LEASED = 'd.project_id = $1 AND d.webhook_id = $2 AND d.session_id = $3 AND d.lease = $4'

/** Steps after an attempt. Parameters of each: $1 project, $2 webhook, $3 session, $4 lease. */
export const AFTER_ATTEMPT = {
  /** It was delivered, or there is nothing up to $5; $6 seconds of the lease. Row: through_seq, if it is still this one's. */
  advance: {
    ...prepared(
      'advance_webhook_delivery',
      `UPDATE webhook_deliveries AS d SET delivered_seq = $5, attempts = 0, not_before = now() + make_interval(secs => $6)
WHERE ${LEASED} RETURNING d.through_seq`,
    ),
    outlivesAbort: true,
  },
  end: prepared(
    'end_webhook_delivery',
    `DELETE FROM webhook_deliveries AS d WHERE ${LEASED} AND d.delivered_seq >= d.through_seq`,
  ),
  /** $5 seconds until it is next taken up. */
  release: {
    ...prepared(
      'release_webhook_delivery',
      `UPDATE webhook_deliveries AS d SET lease = NULL, not_before = now() + make_interval(secs => $5) WHERE ${LEASED}`,
    ),
    outlivesAbort: true,
  },
  /** $5 seconds until the next attempt, $6 seq of the entry, or $7 the session of the input. Row: given_up, if it is still this one's. */
  fail: prepared(
    'fail_webhook_delivery',
    `
WITH old AS MATERIALIZED (
  SELECT e.created_at < now() - ${GIVEN_UP_AFTER} AS is_old FROM entries e
  WHERE e.project_id = $1 AND e.session_id = $3 AND e.seq = $6::bigint
  UNION ALL
  SELECT i.created_at < now() - ${GIVEN_UP_AFTER} FROM session_inbox i
  WHERE i.project_id = $1 AND i.session_id = $7::uuid AND i.id = $3
)
UPDATE webhook_deliveries AS d SET lease = NULL,
  attempts = d.attempts + 1,
  delivered_seq = CASE WHEN o.is_old THEN coalesce($6::bigint, d.through_seq) ELSE d.delivered_seq END,
  not_before = now() + make_interval(secs => $5)
FROM old o WHERE ${LEASED}
RETURNING o.is_old AS given_up`,
  ),
} as const

/** How long deliveries wait at most: a lease or the first pauses, of 5 s, 10 s and so on; then an hour and its share of chance. */
export const DELIVERIES_WAIT = {
  column: 'not_before',
  at_most: [{ s: 60, which: '(t.lease IS NOT NULL OR t.attempts <= 4)' }, { s: 4_500 }],
} as const

/** Parameters: $1 project, $2 webhook, $3 error, $4 whether an entry was given up. */
export const NOTE_FAILURE = prepared(
  'note_webhook_failure',
  `UPDATE webhooks AS w SET last_error = $3, last_error_at = now(), given_up = w.given_up + CASE WHEN $4::boolean THEN 1 ELSE 0 END
WHERE w.project_id = $1 AND w.id = $2`,
)
