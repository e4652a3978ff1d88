import { aggregated } from '../../postgres/column_aggregates.js'
import { prepared } from '../../postgres/statement.js'
import { NEWEST_AT, VIEW_COLUMNS } from './read_queries.js'

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

/** Row: `instructions`, a JSON array of `[seq, id, parent_id, format, tokens, blob as text]`, or null. Parameters: $1 project, $2 session. */
export const READ_INSTRUCTIONS = prepared('read_instructions', `SELECT ${INSTRUCTIONS}`)

const newest = (columns: string, limit: string) =>
  `(SELECT ${columns} FROM entries e WHERE ${LIVE_MESSAGE} AND e.seq <= h.last_seq ORDER BY e.seq DESC LIMIT ${limit})`

/**
 * The newest messages of a session, newest first: about as many as have the tokens that are wanted, by those of the newest
 * few, or all where the whole session has no more than it may have. They are cut off before the message with which their
 * JSON exceeds a number of bytes, but never before the first. Row: none where there is no session; `last_seq`,
 * `total_tokens`, `count` (how many were looked for), `fit` (none was cut off for the bytes), `instructions` as of READ_INSTRUCTIONS, `newest_at`, and the columns of the view
 * `context_message`. Parameters: $1 project, $2 session, $3 messages at most, $4 bytes, $5 tokens that the session may have,
 * $6 tokens that are wanted, $7 messages at least.
 */
export const READ_NEWEST_MESSAGES = prepared(
  'read_newest_messages',
  `
SELECT h.last_seq, h.total_tokens, w.count, coalesce(b.fit, true) AS fit, ${INSTRUCTIONS}, p.*
FROM session_heads h
CROSS JOIN LATERAL (
  SELECT least($3::bigint, CASE WHEN h.total_tokens > $5::bigint THEN (
    SELECT greatest($7::bigint, ceil(${MARGIN} * $6::bigint * count(*) / greatest(sum(n.tokens), 1)))
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
