import { timestampText } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'

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

/** $2 id, $3 url, $4 events, $5 secret. */
export const CREATE_WEBHOOK = prepared(
  'create_webhook',
  `INSERT INTO webhooks AS w (project_id, id, url, events, secret, created_at, given_up)
VALUES ($1, $2, $3, $4, $5, now(), 0)`,
)

/** $2 id. Row: json, with the secret. */
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

/** $2 id. Row: one if there was one. */
export const DELETE_WEBHOOK = prepared(
  'delete_webhook',
  'DELETE FROM webhooks AS w WHERE w.project_id = $1 AND w.id = $2 RETURNING w.id',
)
