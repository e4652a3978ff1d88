import { prepared } from '../postgres/statement.js'

function slice(name: string, behind: string) {
  return prepared(
    name,
    `
SELECT count(*) AS sessions, coalesce(sum(h.last_seq), 0) AS entries,
  coalesce(sum(h.bytes) FILTER (WHERE h.counted = h.last_seq), 0) AS bytes,
  string_agg(h.session_id::text, ',') FILTER (WHERE h.counted <> h.last_seq) AS uncounted,
  max(h.session_id::text) AS last_id
FROM (
  SELECT i.session_id, i.last_seq, i.bytes, i.counted FROM session_heads i
  WHERE i.project_id = $1${behind} ORDER BY i.session_id LIMIT $2
) h`,
  )
}

/**
 * The totals of some sessions of a project, in order of their ids. Row: sessions, entries, bytes (without those of
 * sessions in `uncounted`, separated by commas, whose heads do not know their bytes), last_id. Parameters: $1
 * project, $2 how many; of `next` $3 the id to start after.
 */
export const READ_USAGE = {
  first: slice('read_usage', ''),
  next: slice('read_usage_next', ' AND i.session_id > $3'),
} as const

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

/** Parameters: $1 project, $2 session. Row: bytes. */
export const READ_BYTES = prepared(
  'read_bytes',
  'SELECT h.bytes FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2',
)

/**
 * The totals of some blobs of a project, in order of their ids. Row: found (uploads under way included), blobs, bytes,
 * last_id. Parameters: $1 project, $2 how many, $3 the id to start after, or null.
 */
export const COUNT_BLOB_BYTES = prepared(
  'count_blob_bytes',
  `
SELECT count(*) AS found, count(b.sha256) AS blobs, coalesce(sum(b.bytes), 0) AS bytes, max(b.id::text) AS last_id
FROM (
  SELECT i.id, i.sha256, i.bytes FROM blobs i
  WHERE i.project_id = $1 AND ($3::uuid IS NULL OR i.id > $3::uuid) ORDER BY i.id LIMIT $2
) b`,
)
