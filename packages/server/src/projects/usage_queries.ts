import { dayText, timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'

const NO_ID = '00000000-0000-0000-0000-000000000000'

/**
 * The totals of some sessions of a project, in order of their ids. Row: found, entries, bytes (without those of
 * sessions in `uncounted`, separated by commas, whose heads do not know their bytes), last. Parameters: $1
 * project, $2 how many, $3 the id to start after, or null.
 */
export const COUNT_SESSIONS = prepared(
  'count_sessions',
  `
SELECT count(*) AS found, coalesce(sum(h.last_seq), 0) AS entries,
  coalesce(sum(h.bytes) FILTER (WHERE h.counted = h.last_seq), 0) AS bytes,
  string_agg(h.session_id::text, ',') FILTER (WHERE h.counted <> h.last_seq) AS uncounted,
  max(h.session_id::text) AS last
FROM (
  SELECT i.session_id, i.last_seq, i.bytes, i.counted FROM session_heads i
  WHERE i.project_id = $1 AND i.session_id > coalesce($3::uuid, '${NO_ID}') ORDER BY i.session_id LIMIT $2
) h`,
)

/**
 * Adds up a log whose head does not know its bytes, because an older version, or something other than Annals, wrote
 * it. Row: bytes; none if the log has grown meanwhile, or is gone. Parameters: $1 project, $2 session.
 */
export const COUNT_BYTES = prepared(
  'count_bytes',
  `
UPDATE session_heads AS h SET bytes = c.bytes, counted = c.entries
FROM (
  SELECT coalesce(sum(e.bytes), 0) AS bytes, count(*) AS entries FROM entries e WHERE e.project_id = $1 AND e.session_id = $2
) c
WHERE h.project_id = $1 AND h.session_id = $2 AND h.last_seq = c.entries
RETURNING h.bytes`,
)

/** Row: entries, bytes. Parameters: $1 project, $2 session. */
export const READ_SIZE = prepared(
  'read_size',
  'SELECT h.last_seq AS entries, h.bytes FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2',
)

/** The same of its first entries. Parameters: $1 project, $2 session, $3 last seq of them. */
export const READ_SIZE_UP_TO = prepared(
  'read_size_up_to',
  `SELECT count(*) AS entries, coalesce(sum(e.bytes), 0) AS bytes FROM entries e
WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq <= $3`,
)

/**
 * Some blobs of a project, in order of their ids. Row: found (uploads under way included), blobs, blob_bytes, last.
 * Parameters: $1 project, $2 how many, $3 the id to start after, or null.
 */
export const COUNT_BLOBS = prepared(
  'count_blob_bytes',
  `
SELECT count(*) AS found, count(b.sha256) AS blobs, coalesce(sum(b.bytes), 0) AS blob_bytes, max(b.id::text) AS last
FROM (
  SELECT i.* FROM blobs i
  WHERE i.project_id = $1 AND i.id > coalesce($3::uuid, '${NO_ID}') ORDER BY i.id LIMIT $2
) b`,
)

/**
 * Some inputs that wait for runners, in order of their sessions. Row: found, bytes, last. Parameters: $1 project, $2 how many,
 * $3 the session and input to start after, or null.
 */
export const COUNT_INPUTS = prepared(
  'count_inputs',
  `
SELECT count(*) AS found, coalesce(sum(i.bytes), 0) AS bytes, max(concat(i.session_id, '/', i.id)) AS last
FROM (
  SELECT i.session_id, i.id, i.bytes FROM session_inbox i
  WHERE i.project_id = $1 AND (i.session_id, i.id) >
    (coalesce(split_part($3::text, '/', 1), '${NO_ID}')::uuid, coalesce(split_part($3::text, '/', 2), '${NO_ID}')::uuid)
  ORDER BY i.session_id, i.id LIMIT $2
) i`,
)

/**
 * Some statements of a project, in the order in which they were made, all of one time together. Row: found, last,
 * days (how many were made on which, in UTC, as JSON; null if none). Parameters: $1 project, $2 how many, $3 the time to
 * start after, or null.
 */
export const COUNT_STATEMENTS = prepared(
  'count_statements',
  `
SELECT sum(d.found) AS found, ${timestampText('max(d.last_at)')} AS last, json_object_agg(d.day, d.found)::text AS days
FROM (
  SELECT (i.created_at AT TIME ZONE 'UTC')::date AS day, count(*) AS found, max(i.created_at) AS last_at
  FROM (
    SELECT s.created_at FROM statements s WHERE s.project_id = $1 AND s.created_at > coalesce($3::timestamptz, '-infinity')
    ORDER BY s.created_at FETCH FIRST $2 ROWS WITH TIES
  ) i
  GROUP BY 1
) d`,
)

/**
 * Adds what was stored on a day. Parameters: $1 project, $2 day, $3 sessions, $4 entries, $5 bytes, $6 blobs, $7 bytes of
 * blobs.
 */
export const ADD_USAGE = prepared(
  'add_usage',
  `INSERT INTO usage_days AS u (project_id, day, sessions, entries, bytes, blobs, blob_bytes)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (project_id, day) DO UPDATE SET sessions = u.sessions + excluded.sessions, entries = u.entries + excluded.entries,
  bytes = u.bytes + excluded.bytes, blobs = u.blobs + excluded.blobs, blob_bytes = u.blob_bytes + excluded.blob_bytes`,
)

const TODAY = "(now() AT TIME ZONE 'UTC')::date"

/** Newest first. Parameters: $1 project, $2 how many days, today among them. Rows: days with any use. */
export const READ_USAGE_DAYS = prepared(
  'read_usage_days',
  `SELECT ${dayText('u.day')} AS day, u.sessions, u.entries, u.bytes, u.blobs, u.blob_bytes, u.model_tokens FROM usage_days u
WHERE u.project_id = $1 AND u.day > ${TODAY} - $2::int ORDER BY u.day DESC`,
)

/** Parameters: $1 project. Row: used (tokens of models, today), max (null: as the service is configured). */
export const READ_MODEL_TOKENS = prepared(
  'read_model_tokens',
  `SELECT p.max_model_tokens_per_day AS max,
  (SELECT u.model_tokens FROM usage_days u WHERE u.project_id = $1 AND u.day = ${TODAY}) AS used
FROM projects p WHERE p.id = $1`,
)
