import { aggregated } from '@annals/kits/postgres/column_aggregates.js'
import { ofProject } from '@annals/kits/postgres/statement.js'
import { byId, bySeq, LOG_VERSION, TRACKING, VIEW_COLUMNS } from './read_queries.js'

/**
 * Which entries of a session have the given ids. Row: none where there is no session; `found`, a JSON array of
 * `[index from 1, seq, type]` in the order of the ids, or null. Parameters: $1 project, $2 session, $3 ids.
 */
export const FIND_IDS = ofProject(
  'find_ids',
  `
SELECT h.last_seq, p.found
FROM {session_heads} h
CROSS JOIN LATERAL (
  SELECT json_agg(json_build_array(x.place, e.seq, e.type) ORDER BY x.place) AS found
  FROM unnest($3::uuid[]) WITH ORDINALITY AS x (id, place)
  JOIN LATERAL (
    SELECT o.seq, o.type FROM {entries} o WHERE o.project_id = $1 AND ${byId('o', '$2', 'x.id')}
  ) e ON true
) p
WHERE h.project_id = $1 AND h.session_id = $2`,
)

const LIVE_KEY = 'e.project_id = $1 AND e.session_id = $2 AND e.key IS NOT NULL AND e.retracted_by IS NULL'

const newestOf = (keys: string, order: string) => `
    SELECT e.* FROM {entries} e
    WHERE ${LIVE_KEY} AND ${keys}
    ORDER BY ${order} LIMIT 1`

/**
 * The entries that `latest` selects, in the order of their keys, cut off before the entry with which their JSON exceeds a
 * number of bytes, but never before the first. Row: none where there is no session; `found` (how many there were before
 * that), and the columns of the view `latest`.
 */
const latestText = (latest: string, limit: string, bytes: string) => `
WITH RECURSIVE latest AS (${latest})
SELECT (SELECT count(*) FROM (SELECT FROM latest LIMIT ${limit}) l) AS found, ${LOG_VERSION}, ${TRACKING}p.*
FROM {session_heads} h
CROSS JOIN LATERAL (
  SELECT ${aggregated(VIEW_COLUMNS.latest)}
  FROM (
    SELECT e.*, sum(e.bytes) OVER (ORDER BY e.key ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
    FROM (SELECT l.* FROM latest l LIMIT ${limit}) e
  ) e
  WHERE e.bytes_before = 0 OR e.bytes_before + e.bytes <= ${bytes}
) p
WHERE h.project_id = $1 AND h.session_id = $2`

/**
 * The newest live entry of each key: from one key the next is found in the index, however many entries it has.
 * Parameters: $1 project, $2 session, $3 only keys after this one, $4 only keys with this prefix, $5 how many at most,
 * $6 bytes.
 */
export const READ_LATEST = ofProject(
  'read_latest',
  latestText(
    `
  SELECT first.* FROM (${newestOf('e.key > $3 AND e.key >= $4', 'e.key, e.seq DESC')}
  ) first
  WHERE starts_with(first.key, $4)
  UNION ALL
  SELECT next.* FROM latest l CROSS JOIN LATERAL (${newestOf('e.key > l.key', 'e.key, e.seq DESC')}
  ) next
  WHERE starts_with(next.key, $4)
`,
    '$5',
    '$6::bigint',
  ),
)

/** Parameters: $1 project, $2 session, $3 seq. Row: key. */
export const READ_KEY = ofProject(
  'read_key_of_entry',
  'SELECT e.key FROM {entries} e WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq = $3',
)

/** The newest live entry of one key. Parameters: $1 project, $2 session, $3 key. */
export const READ_LATEST_OF_KEY = ofProject(
  'read_latest_of_key',
  latestText(newestOf('e.key = $3', 'e.seq DESC'), '1', '0'),
)

/**
 * Entries as items of the timeline, in the order of their given seqs, cut off before the entry with which their JSON
 * exceeds a number of bytes, but never before the first. Row: the columns of the view `item`. Parameters: $1 project,
 * $2 session, $3 seqs, $4 bytes.
 */
export const READ_SEQS = ofProject(
  'read_seqs',
  `
SELECT ${TRACKING}p.*
FROM (
  SELECT ${aggregated(VIEW_COLUMNS.item)}
  FROM (
    SELECT e.*, sum(e.bytes) OVER (ORDER BY x.place ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
    FROM unnest($3::bigint[]) WITH ORDINALITY AS x (seq, place)
    JOIN LATERAL (
      SELECT o.* FROM {entries} o WHERE o.project_id = $1 AND o.session_id = $2 AND ${bySeq('o', 'x.seq')}
    ) e ON true
    ORDER BY x.place
  ) e
  WHERE e.bytes_before = 0 OR e.bytes_before + e.bytes <= $4::bigint
) p`,
)
