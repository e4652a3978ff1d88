import { prepared } from '../../postgres/statement.js'
import { RETRACTION_TYPE } from '../append/append_request.js'
import { seqIn, validCompactions } from '../append/compaction_steps.js'

/**
 * What the valid compactions of a session cover: those nest, so that the newest covers what all do. Row: seq, from_seq and
 * to_seq of the newest, and `count` of all; none without any. Parameters: $1 project, $2 session.
 */
export const READ_COMPACTED = prepared(
  'read_compacted',
  `
SELECT e.seq, ${seqIn('from_seq')} AS from_seq, ${seqIn('to_seq')} AS to_seq, count(*) OVER () AS count
FROM entries e WHERE ${validCompactions('$1', '$2')} ORDER BY e.seq DESC LIMIT 1`,
)

/** What a compaction covers of the entries `i` in its range: all that are live, but for retractions. */
const COVERED = `i.retracted_by IS NULL AND i.type IS DISTINCT FROM '${RETRACTION_TYPE}'`

/**
 * A line of an entry in the digest of a compaction, which is the SHA-256 of all lines: its seq, and the SHA-256 of its type
 * or format with its content. Ids are not in it, since copies have others.
 */
const LINE = `i.seq || ' ' || encode(sha256(convert_to(coalesce(i.type, i.format) || ' ' || i.data::text, 'UTF8')), 'hex') || E'\\n'`

const LINES = `coalesce(string_agg(${LINE}, '' ORDER BY i.seq), '')`

/**
 * What is covered between two seqs, both included. Row: `lines`; entries and messages. Parameters: $1 project, $2 session, $3 first seq, $4 last seq.
 */
export const READ_COVERED = prepared(
  'read_covered',
  `
SELECT ${LINES} AS lines, count(*) AS entries, count(*) FILTER (WHERE i.kind = 'message') AS messages
FROM entries i
WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq BETWEEN $3::bigint AND $4::bigint AND ${COVERED}`,
)

/** The digest of what a compaction covers. */
export function digestText(project: string, session: string, from_seq: string, to_seq: string): string {
  return `(
    SELECT encode(sha256(convert_to(${LINES}, 'UTF8')), 'hex') FROM entries i
    WHERE i.project_id = ${project} AND i.session_id = ${session} AND i.seq BETWEEN ${from_seq} AND ${to_seq} AND ${COVERED}
  )`
}
