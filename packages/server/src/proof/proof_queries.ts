import { timestampText } from '@annals/kits/lists/resource_json.js'
import { planned, prepared } from '@annals/kits/postgres/statement.js'
import { CONTENT } from './chain_queries.js'

const quoted = (expression: string) => `to_json(${expression})::text`

/**
 * An entry with the links around it. Row: one, if there is the session; without an id if there is no such entry. All but
 * numbers and hashes is JSON. Parameters: $1 project, $2 session, $3 seq.
 */
export const FIND_LINK = prepared(
  'find_link',
  `SELECT h.last_seq, encode(h.proof, 'hex') AS head, s.forked_proof, i.id, i.kind, ${timestampText('i.created_at')} AS created_at,
  ${quoted('i.type')} AS type, ${quoted('i.role')} AS role, ${quoted('i.format')} AS format, ${quoted('i.key')} AS key,
  '"' || ${timestampText('i.occurred_at')} || '"' AS occurred_at, i.data::text AS data, i.meta::text AS meta,
  encode(i.proof, 'hex') AS link, encode(b.proof, 'hex') AS before
FROM session_heads h
JOIN sessions s ON s.project_id = $1 AND s.id = h.session_id
LEFT JOIN entries i ON i.project_id = $1 AND i.session_id = h.session_id AND i.seq = $3
LEFT JOIN entries b ON b.project_id = $1 AND b.session_id = h.session_id AND b.seq = $3 - 1
WHERE h.project_id = $1 AND h.session_id = $2`,
)

export const FIND_CHAIN = prepared(
  'find_chain_of_destination',
  'SELECT d.chain FROM proof_destinations d WHERE d.destination = $1',
)

/**
 * The first anchored head at or after an entry that its log has; of several anchors of it, the one of a chain.
 * Parameters: $1 project, $2 session, $3 seq, $4 chain, or null.
 */
export const FIND_ANCHOR = prepared(
  'find_anchor',
  `SELECT l.seq, encode(l.head, 'hex') AS head, l.place, encode(l.path, 'hex') AS path, a.statement
FROM proof_leaves l
JOIN entries e ON e.project_id = $1 AND e.session_id = $2 AND e.seq = l.seq AND e.proof = l.head
JOIN proof_anchors a ON a.project_id = $1 AND a.chain = l.chain AND a.nth = l.nth
WHERE l.project_id = $1 AND l.session_id = $2 AND l.seq >= $3
ORDER BY l.seq, l.chain IS DISTINCT FROM $4::uuid LIMIT 1`,
)

/** The bytes of entries between two seqs, the second one included. Parameters: $1 project, $2 session, $3 and $4 seqs. */
export const COUNT_BETWEEN = prepared(
  'count_bytes_between',
  `SELECT coalesce(sum(i.bytes), 0) AS bytes FROM entries i
WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq > $3 AND i.seq <= $4`,
)

/** Parts of the links of entries, beside the link before. Parameters: as COUNT_BETWEEN. */
export const READ_BETWEEN = planned(
  'read_links_between',
  `SELECT json_build_object('seq', i.seq, 'id', i.id, 'created_at', ${timestampText('i.created_at')}, 'kind', i.kind,
  'content_sha256', encode(sha256(convert_to(${CONTENT}, 'UTF8')), 'hex'))::text AS step
FROM entries i
WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq > $3 AND i.seq <= $4 ORDER BY i.seq`,
)
