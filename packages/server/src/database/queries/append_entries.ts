import { prepared } from '../statement.js'
import { appendedMessageJson, entryItemJson, eventJson } from './resource_json.js'

/** What an append is answered with: the resource itself for a single one, a timeline item in a batch. */
function answerJson(entry: string, session: string, kind: string): string {
  return `CASE ${kind} WHEN 'event' THEN ${eventJson(entry)} WHEN 'message' THEN ${appendedMessageJson(entry, session)}
    ELSE ${entryItemJson(entry, session)} END`
}

/**
 * One flush: every append of one project that waited for the same commit, in one statement.
 *
 * It locks the head rows of the sessions concerned in the order of their ids (so that two flushes cannot
 * deadlock), decides each request against what it finds there, numbers what is admitted, inserts it, and
 * moves the heads. A request for an unknown session, or one whose If-Match no longer holds, only gives no
 * rows of its own and hinders nobody.
 *
 * Rules that the caller (log/flush.ts) keeps, so that one set-based statement can decide all requests:
 *   - a request with if_match is the first of its session in the flush: the head is what it is compared to;
 *   - an idempotency key, and an entry's own id, occur once in the flush.
 * A key or id that another node stores in the same instant ends in a unique violation, and the flush is run
 * again: then it is found in `past` or `known`.
 *
 * Parameters: $1 project; one element a request: $2 session, $3 kind (event, message, entries), $4 if_match,
 * $5 key, $6 request hash, $7 the bodies as one JSON array; one element an entry: $8 ordinal of the request
 * (from 1), $9 position in it (from 1), $10 id, $11 bytes, $12 tokens, $13 role; $14 the ids that callers gave.
 */
export const APPEND_ENTRIES = prepared(
  'append_entries',
  `
WITH request AS MATERIALIZED (
  SELECT r.ord, r.session_id, r.kind, r.if_match, r.key, r.request_hash, r.body
  FROM ROWS FROM (unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[]), jsonb_array_elements($7::jsonb))
    WITH ORDINALITY AS r (session_id, kind, if_match, key, request_hash, body, ord)
), head AS MATERIALIZED (
  SELECT h.session_id, h.last_seq, h.last_message_id, h.updated_at
  FROM session_heads h
  WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])
  ORDER BY h.session_id
  FOR UPDATE
), past AS MATERIALIZED (
  SELECT k.key, k.request_hash, k.owner_id, k.seqs
  FROM idempotency_keys k
  WHERE k.project_id = $1 AND k.key = ANY ($5::text[])
), known AS MATERIALIZED (
  SELECT e.session_id, e.id, e.seq, e.kind, e.type, e.format, e.data, e.meta
  FROM entries e
  WHERE e.project_id = $1 AND e.session_id = ANY ($2::uuid[]) AND e.id = ANY ($14::uuid[])
), asked AS MATERIALIZED (
  SELECT x.*, k.seq AS known_seq,
    k.seq IS NOT NULL AND (k.kind <> x.kind OR k.type IS DISTINCT FROM x.type OR k.format IS DISTINCT FROM x.format
      OR k.data <> x.data OR k.meta IS DISTINCT FROM x.meta) AS differs
  FROM (
    SELECT r.ord, s.position, r.session_id, i.id, i.bytes, i.tokens, i.role, c.kind,
      CASE WHEN c.kind = 'event' THEN s.source ->> 'type' END AS type,
      CASE WHEN c.kind = 'message' THEN coalesce(s.source ->> 'format', 'openai') END AS format,
      s.source -> CASE WHEN c.kind = 'event' THEN 'data' ELSE 'blob' END AS data,
      CASE WHEN c.kind = 'message' THEN coalesce(nullif(s.source -> 'meta', 'null'), '{}') END AS meta
    FROM request r
    CROSS JOIN LATERAL jsonb_array_elements(
      CASE WHEN r.kind = 'entries' THEN r.body -> 'entries' ELSE jsonb_build_array(r.body) END
    ) WITH ORDINALITY AS s (source, position)
    CROSS JOIN LATERAL (SELECT CASE WHEN r.kind = 'entries' THEN s.source ->> 'kind' ELSE r.kind END AS kind) c
    JOIN unnest($8::int[], $9::int[], $10::uuid[], $11::int[], $12::int[], $13::text[])
      AS i (ord, position, id, bytes, tokens, role) ON i.ord = r.ord AND i.position = s.position
  ) x
  LEFT JOIN known k ON k.session_id = x.session_id AND k.id = x.id
), verdict AS MATERIALIZED (
  SELECT a.ord, bool_and(a.known_seq IS NOT NULL) AS all_known, bool_or(a.differs) AS differs FROM asked a GROUP BY a.ord
), admitted AS MATERIALIZED (
  SELECT r.ord, r.session_id, r.key, r.request_hash, h.last_seq, h.last_message_id, h.updated_at
  FROM request r JOIN head h ON h.session_id = r.session_id JOIN verdict v ON v.ord = r.ord
  WHERE NOT v.differs AND (r.if_match IS NULL OR r.if_match = h.last_seq OR v.all_known)
    AND NOT EXISTS (SELECT FROM past p WHERE p.key = r.key)
), fresh AS MATERIALIZED (
  SELECT a.*, d.last_seq + row_number() OVER (PARTITION BY a.session_id ORDER BY a.ord, a.position) AS seq,
    greatest(now(), d.updated_at) AS created_at,
    CASE WHEN a.kind = 'message'
      THEN coalesce(lag(a.id) OVER (PARTITION BY a.session_id, a.kind ORDER BY a.ord, a.position), d.last_message_id)
    END AS parent_id
  FROM asked a JOIN admitted d ON d.ord = a.ord
  WHERE a.known_seq IS NULL
), inserted AS (
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens,
    kind, type, role, format, data, meta)
  SELECT $1, f.session_id, f.seq, f.created_at, f.created_at, f.id, f.parent_id, f.bytes, f.tokens, f.kind, f.type,
    nullif(f.role, ''), f.format, f.data, f.meta
  FROM fresh f
  ORDER BY f.session_id, f.seq
  RETURNING e.*
), moved AS (
  UPDATE session_heads h
  SET last_seq = m.last_seq, total_tokens = h.total_tokens + m.tokens, updated_at = m.updated_at,
    last_message_id = coalesce(m.last_message_id, h.last_message_id)
  FROM (
    SELECT f.session_id, max(f.seq) AS last_seq, sum(f.tokens) AS tokens, max(f.created_at) AS updated_at,
      (array_agg(f.id ORDER BY f.seq DESC) FILTER (WHERE f.kind = 'message'))[1] AS last_message_id
    FROM fresh f GROUP BY f.session_id
  ) m
  WHERE h.project_id = $1 AND h.session_id = m.session_id
), remembered AS (
  INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, seqs)
  SELECT $1, a.key, a.request_hash, a.session_id, now(), s.seqs
  FROM admitted a
  JOIN (
    SELECT q.ord, array_agg(coalesce(f.seq, q.known_seq) ORDER BY q.position) AS seqs
    FROM asked q LEFT JOIN fresh f ON f.ord = q.ord AND f.position = q.position
    GROUP BY q.ord
  ) s ON s.ord = a.ord
  WHERE a.key IS NOT NULL
  ORDER BY a.key
)
SELECT r.ord, h.last_seq AS head_seq, p.request_hash AS past_hash, p.owner_id AS past_session_id,
  array_to_string(p.seqs, ',') AS past_seqs, d.ord IS NOT NULL AS admitted, q.differs, q.position, q.known_seq, e.seq,
  CASE WHEN e.seq IS NULL THEN NULL ELSE ${answerJson('e', 's', 'r.kind')} END AS json
FROM request r
LEFT JOIN head h ON h.session_id = r.session_id
LEFT JOIN past p ON p.key = r.key
LEFT JOIN admitted d ON d.ord = r.ord
JOIN asked q ON q.ord = r.ord
LEFT JOIN inserted e ON e.session_id = q.session_id AND e.id = q.id
LEFT JOIN sessions s ON s.project_id = $1 AND s.id = e.session_id AND e.kind = 'message'
ORDER BY r.ord, q.position`,
)

/**
 * Entries by their seqs, as an append of the given kind was answered, in the order of the seqs asked for: for
 * retries. `blob` is what a message's parts are derived from.
 * Parameters: $1 project, $2 session, $3 seqs, $4 kind of the request.
 */
export const READ_APPENDED_ENTRIES = prepared(
  'read_appended_entries',
  `
SELECT e.seq, e.kind, e.format, CASE WHEN e.kind = 'message' THEN e.data::text END AS blob, ${answerJson('e', 's', '$4::text')} AS json
FROM unnest($3::bigint[]) WITH ORDINALITY AS w(seq, ord)
JOIN entries e ON e.project_id = $1 AND e.session_id = $2 AND e.seq = w.seq
JOIN sessions s ON s.project_id = $1 AND s.id = $2
ORDER BY w.ord`,
)
