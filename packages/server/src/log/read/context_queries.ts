import { aggregated } from '../../postgres/column_aggregates.js'
import { prepared } from '../../postgres/statement.js'
import { seqText, validCompactionsText } from './compaction_queries.js'
import { bySeq, NEWEST_AT, VIEW_COLUMNS } from './read_queries.js'

const INSTRUCTIONS_MAX = 64
const INSTRUCTION_BYTES_MAX = 1024 * 1024
/** From as many messages it is estimated how many are needed, and some more: another statement costs more than those. */
const SAMPLED_MESSAGES = 32
const MARGIN = 1.1

const LIVE_MESSAGE =
  "e.project_id = $1 AND e.session_id = $2 AND e.kind = 'message' AND e.retracted_by IS NULL"

/** The newest instructions of a session, as far as they have no more bytes than allowed, oldest first. */
const INSTRUCTIONS = `(
  SELECT json_agg(json_build_array(i.seq, i.id, i.parent_id, i.format, i.tokens, i.data::text) ORDER BY i.seq)
  FROM (
    SELECT e.*, sum(e.bytes) OVER (ORDER BY e.seq DESC) AS bytes_up_to
    FROM (
      SELECT e.* FROM entries e
      WHERE ${LIVE_MESSAGE}
        AND coalesce(e.data #>> '{meta,provider_role}', e.data ->> 'role') IN ('system', 'developer')
      ORDER BY e.seq DESC
      LIMIT ${INSTRUCTIONS_MAX}
    ) e
  ) i
  WHERE i.bytes_up_to <= ${INSTRUCTION_BYTES_MAX}
) AS instructions`

/** The newest valid compaction of a session, if it is wanted: seq, id, to_seq (null: it is none), and data as text. */
const compaction = (isWanted: string) => `LEFT JOIN LATERAL (
  SELECT e.seq AS compaction_seq, e.id AS compaction_id, ${seqText('to_seq')} AS to_seq, e.data::text AS compaction
  FROM entries e WHERE ${validCompactionsText('$1', '$2')} ORDER BY e.seq DESC LIMIT 1
) c ON ${isWanted}`
const COMPACTION_COLUMNS = 'c.compaction_seq, c.compaction_id, c.compaction'

/**
 * Row: `instructions`, a JSON array of `[seq, id, parent_id, format, tokens, blob as text]`, or null, and the newest
 * compaction. Parameters: $1 project, $2 session, $3 whether the compaction is wanted.
 */
export const READ_INSTRUCTIONS = prepared(
  'read_instructions',
  `SELECT ${INSTRUCTIONS}, ${COMPACTION_COLUMNS} FROM (SELECT) h ${compaction('$3::boolean')}`,
)

/** Live messages by their seqs, as `instructions`. Parameters: $1 project, $2 session, $3 seqs. */
export const READ_MESSAGES_AT = prepared(
  'read_messages_at',
  `
SELECT json_agg(json_build_array(e.seq, e.id, e.parent_id, e.format, e.tokens, e.data::text) ORDER BY e.seq) AS instructions
FROM unnest($3::bigint[]) AS x (seq)
JOIN LATERAL (SELECT e.* FROM entries e WHERE ${LIVE_MESSAGE} AND ${bySeq('e', 'x.seq')}) e ON true`,
)

const newest = (columns: string, limit: string) =>
  `(SELECT ${columns} FROM entries e WHERE ${LIVE_MESSAGE} AND e.seq <= h.last_seq AND e.seq > coalesce(c.to_seq, 0) ORDER BY e.seq DESC LIMIT ${limit})`

/**
 * The newest messages of a session, newest first, behind what its newest compaction covers: about as many as have the tokens
 * that are wanted (behind a compaction: that there may be), by those of the newest few, or all where the whole session has no more than it may have. They are cut off before the message with which their
 * JSON exceeds a number of bytes, but never before the first. Row: none where there is no session; `last_seq`,
 * `total_tokens`, `count` (how many were looked for), `fit` (none was cut off for the bytes), `instructions` and the compaction as of READ_INSTRUCTIONS, `newest_at`, and the columns of the view
 * `context_message`. Parameters: $1 project, $2 session, $3 messages at most, $4 bytes, $5 tokens that the session may have,
 * $6 tokens that are wanted, $7 messages at least, $8 whether the compaction is wanted.
 */
export const READ_NEWEST_MESSAGES = prepared(
  'read_newest_messages',
  `
SELECT h.last_seq, h.total_tokens, w.count, coalesce(b.fit, true) AS fit, ${INSTRUCTIONS}, ${COMPACTION_COLUMNS}, p.*
FROM session_heads h ${compaction('$8::boolean')}
CROSS JOIN LATERAL (
  SELECT least($3::bigint, CASE WHEN h.total_tokens > $5::bigint THEN (
    SELECT greatest($7::bigint, ceil(${MARGIN} * CASE WHEN c.to_seq IS NULL THEN $6::bigint ELSE $5::bigint END * count(*) / greatest(sum(n.tokens), 1)))
    FROM ${newest('e.tokens', String(SAMPLED_MESSAGES))} n
  )::bigint END) AS count
  OFFSET 0
) w
CROSS JOIN LATERAL (
  SELECT sum(n.bytes) <= $4::bigint AS fit FROM ${newest('e.bytes', 'w.count')} n
) b
CROSS JOIN LATERAL (
  SELECT ${aggregated(VIEW_COLUMNS.context_message)}${NEWEST_AT}
  FROM ${newest(
    'e.*',
    `CASE WHEN b.fit THEN w.count ELSE (
    SELECT count(*) FROM (
      SELECT n.bytes, sum(n.bytes) OVER (ORDER BY n.seq DESC ROWS UNBOUNDED PRECEDING) AS bytes_up_to
      FROM ${newest('e.seq, e.bytes', 'w.count')} n
    ) n
    WHERE n.bytes_up_to = n.bytes OR n.bytes_up_to <= $4::bigint
  ) END`,
  )} e
) p
WHERE h.project_id = $1 AND h.session_id = $2`,
)
