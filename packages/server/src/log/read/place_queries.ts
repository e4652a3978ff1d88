import { aggregated } from '../../postgres/column_aggregates.js'
import { planned, prepared } from '../../postgres/statement.js'
import { byId, bySeq, TRACKING, VIEW_COLUMNS } from './read_queries.js'

/** Entries that are asked for one by one: by ids, by keys, by seqs. */

/**
 * Which entries of a session have the given ids. Row: none where there is no session; `found`, a JSON array of
 * `[index from 1, seq, type]` in the order of the ids, or null. Parameters: $1 project, $2 session, $3 ids.
 */
export const FIND_IDS = prepared(
  'find_ids',
  `
SELECT h.last_seq, p.found
FROM session_heads h
CROSS JOIN LATERAL (
  SELECT json_agg(json_build_array(x.place, e.seq, e.type) ORDER BY x.place) AS found
  FROM unnest($3::uuid[]) WITH ORDINALITY AS x (id, place)
  JOIN LATERAL (
    SELECT o.seq, o.type FROM entries o WHERE o.project_id = $1 AND o.session_id = $2 AND ${byId('o', 'x.id')}
  ) e ON true
) p
WHERE h.project_id = $1 AND h.session_id = $2`,
)

const LIVE_KEY = 'e.project_id = $1 AND e.session_id = $2 AND e.key IS NOT NULL AND e.retracted_by IS NULL'

/**
 * The newest live entry of each key, in the order of keys: from one key the next is found in the index, however many
 * entries it has. Row: none where there is no session; `found`, a JSON array of `[key, seq]`, or null. Parameters:
 * $1 project, $2 session, $3 only keys behind this one, $4 only keys with this prefix, $5 how many at most.
 */
export const FIND_LATEST = planned(
  'find_latest',
  `
WITH RECURSIVE latest (key, seq) AS (
  SELECT first.key, first.seq
  FROM (
    SELECT e.key, e.seq FROM entries e WHERE ${LIVE_KEY} AND e.key > $3 AND e.key >= $4
    ORDER BY e.key, e.seq DESC LIMIT 1
  ) first
  WHERE starts_with(first.key, $4)
  UNION ALL
  SELECT next.key, next.seq
  FROM latest l CROSS JOIN LATERAL (
    SELECT e.key, e.seq FROM entries e WHERE ${LIVE_KEY} AND e.key > l.key
    ORDER BY e.key, e.seq DESC LIMIT 1
  ) next
  WHERE starts_with(next.key, $4)
)
SELECT h.last_seq, (
  SELECT json_agg(json_build_array(f.key, f.seq)) FROM (SELECT l.key, l.seq FROM latest l LIMIT $5) f
) AS found
FROM session_heads h
WHERE h.project_id = $1 AND h.session_id = $2`,
)

/** The newest live entry of one key. Row and first two parameters as of FIND_LATEST; $3 key. */
export const FIND_LATEST_OF_KEY = prepared(
  'find_latest_of_key',
  `
SELECT h.last_seq, (
  SELECT json_build_array(json_build_array(f.key, f.seq)) FROM (
    SELECT e.key, e.seq FROM entries e WHERE ${LIVE_KEY} AND e.key = $3 ORDER BY e.seq DESC LIMIT 1
  ) f
) AS found
FROM session_heads h
WHERE h.project_id = $1 AND h.session_id = $2`,
)

/**
 * Entries as items of the timeline, in the order of their given seqs, cut off before the entry with which their JSON
 * exceeds a number of bytes, but never before the first. Row: the columns of the view `item`. Parameters: $1 project,
 * $2 session, $3 seqs, $4 bytes.
 */
export const READ_SEQS = prepared(
  'read_seqs',
  `
SELECT ${TRACKING}p.*
FROM (
  SELECT ${aggregated(VIEW_COLUMNS.item)}
  FROM (
    SELECT e.*, sum(e.bytes) OVER (ORDER BY x.place ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
    FROM unnest($3::bigint[]) WITH ORDINALITY AS x (seq, place)
    JOIN LATERAL (
      SELECT o.* FROM entries o WHERE o.project_id = $1 AND o.session_id = $2 AND ${bySeq('o', 'x.seq')}
    ) e ON true
    ORDER BY x.place
  ) e
  WHERE e.bytes_before = 0 OR e.bytes_before + e.bytes <= $4::bigint
) p`,
)
