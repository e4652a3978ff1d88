import { ofProject } from '@annals/kits/postgres/statement.js'
import { COMPACTION_TYPE } from '@annals/messages/context'
import { RETRACTION_TYPE } from '../append/append_request.js'

/**
 * A compaction is the event that says what stands for the entries in its range in a context. It is valid until an entry in
 * its range is retracted, and is then retracted by the same event, so that what leaves out retracted entries leaves out what
 * was said about them.
 */

/** The valid compactions of a session, as the index has them. */
export function validCompactionsText(project: string, session: string): string {
  return `e.project_id = ${project} AND e.session_id = ${session} AND e.type = '${COMPACTION_TYPE}' AND e.retracted_by IS NULL`
}

/**
 * A seq in the data of a compaction `e`. An event of that type may also be a caller's from before there were compactions,
 * with anything in it: that covers nothing.
 */
export function seqText(field: 'from_seq' | 'to_seq'): string {
  return `CASE WHEN jsonb_typeof(e.data -> '${field}') = 'number'
              THEN greatest(least((e.data -> '${field}')::numeric, ${Number.MAX_SAFE_INTEGER}), 0)::bigint END`
}

/**
 * The range of the valid compactions of a session: they nest, so the newest covers all. Row: seq, from_seq and
 * to_seq of the newest, and `count` of all; none without any. Parameters: $1 project, $2 session.
 */
export const READ_COMPACTED = ofProject(
  'read_compacted',
  `
SELECT e.seq, ${seqText('from_seq')} AS from_seq, ${seqText('to_seq')} AS to_seq, count(*) OVER () AS count
FROM {entries} e WHERE ${validCompactionsText('$1', '$2')} ORDER BY e.seq DESC LIMIT 1`,
)

/** Entries `i` that a compaction of their range covers: all that are live, but for retractions. */
const COVERED = `i.retracted_by IS NULL AND i.type IS DISTINCT FROM '${RETRACTION_TYPE}'`

/**
 * A line of an entry in the digest of a compaction, which is the SHA-256 of all lines: its seq, and the SHA-256 of its type
 * or format with its content. Ids are not in it, since copies have others.
 */
const LINE = `i.seq || ' ' || encode(sha256(convert_to(coalesce(i.type, i.format) || ' ' || i.data::text, 'UTF8')), 'hex') || E'\\n'`

const LINES = `coalesce(string_agg(${LINE}, '' ORDER BY i.seq), '')`

/**
 * Covered entries between two seqs, both included. Row: `lines`; entries and messages. Parameters: $1 project, $2 session, $3 first seq, $4 last seq.
 */
export const READ_COVERED = ofProject(
  'read_covered',
  `
SELECT ${LINES} AS lines, count(*) AS entries, count(*) FILTER (WHERE i.kind = 'message') AS messages
FROM {entries} i
WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq BETWEEN $3::bigint AND $4::bigint AND ${COVERED}`,
)

export function digestText(project: string, session: string, from_seq: string, to_seq: string): string {
  return `(
    SELECT encode(sha256(convert_to(${LINES}, 'UTF8')), 'hex') FROM entries i
    WHERE i.project_id = ${project} AND i.session_id = ${session} AND i.seq BETWEEN ${from_seq} AND ${to_seq} AND ${COVERED}
  )`
}
