import { BLOBS_OF_ENTRY, notErased } from '@annals/kits/lifecycle/table.js'
import { indexTermsText } from '@annals/kits/lists/listed.js'
import { planned } from '@annals/kits/postgres/statement.js'
import { COMPACTION_TYPE } from '@annals/messages/context'
import { SESSION_LIST } from 'annals/dist/log/append/append_queries.js'
import { RETRACTION_TYPE } from 'annals/dist/log/append/append_request.js'
import { seqText } from 'annals/dist/log/read/compaction_queries.js'
import { findingsSql } from '../verify/findings.js'
import { SESSION_CHECKS } from './session_check_queries.js'

/**
 * Searches for what must not be. One statement reads a bounded piece of a project, a range of sessions or of keys,
 * and returns a row for each problem. One statement is one snapshot, on a single server and on a cluster, so a
 * running service is never seen in the middle of a write. It takes no lock that a write would wait for, and the
 * snapshot lasts only for a piece, so vacuum is not held up for the whole run.
 */

// A range of ids; null means no bound.
function within(id: string): string {
  return `($2::uuid IS NULL OR ${id} > $2) AND ($3::uuid IS NULL OR ${id} <= $3)`
}

/**
 * Sessions whose ids are in a range, their heads and logs. `id_before` of a message is the previous message's id.
 * `whole` has a row for everything that has a session's id, even if only entries. It uses FULL JOIN, which PostgreSQL
 * executes by hashing or sorting and never by comparing every pair of rows, whatever the planner expects. Rows:
 * check, session_id, place, detail, found (how many of these are in the piece). Parameters: $1 project, $2 id to
 * start after or null, $3 last id or null.
 */
export const VERIFY_SESSIONS = planned(
  'verify_sessions',
  `
WITH session AS MATERIALIZED (
  SELECT s.id, s.user_id, s.parent_id, s.expires_in_s, s.expiry_due_at, s.created_at, i.terms, i.signature
  FROM sessions s CROSS JOIN LATERAL ${indexTermsText(SESSION_LIST, 's')} AS i
  WHERE s.project_id = $1 AND ${within('s.id')}
), head AS MATERIALIZED (
  SELECT h.* FROM session_heads h WHERE h.project_id = $1 AND ${within('h.session_id')}
), log AS MATERIALIZED (
  SELECT e.session_id, e.seq, e.id, e.parent_id, e.kind, e.bytes, e.tokens, e.created_at, e.updated_at,
    e.retracted_by, CASE WHEN e.type = '${RETRACTION_TYPE}' THEN e.data -> 'seqs' END AS retracted_seqs,
    coalesce(e.type = '${RETRACTION_TYPE}', false) AS is_retraction, e.live_seq,
    coalesce(max(e.seq) FILTER (WHERE e.retracted_by IS NULL AND e.type IS DISTINCT FROM '${RETRACTION_TYPE}') OVER before, 0) AS live_before,
    CASE WHEN e.type = '${COMPACTION_TYPE}' THEN e.data ->> 'digest' END AS compacted,
    CASE WHEN e.type = '${COMPACTION_TYPE}' THEN ${seqText('from_seq')} END AS from_seq,
    CASE WHEN e.type = '${COMPACTION_TYPE}' THEN ${seqText('to_seq')} END AS to_seq,
    CASE
      WHEN e.kind = 'event' THEN e.type IS NOT NULL AND num_nulls(e.role, e.format, e.meta, e.patched_meta) = 4
      WHEN e.kind = 'message' THEN e.type IS NULL AND num_nulls(e.role, e.format, e.meta) = 0
      ELSE false END AS is_formed,
    jsonb_path_query_array(e.data, '${BLOBS_OF_ENTRY}') AS blobs,
    lag(e.seq) OVER log AS seq_before, lag(e.created_at) OVER log AS created_at_before,
    lag(e.id) OVER same_kind AS id_before, lead(e.id) OVER same_kind IS NULL AS is_last
  FROM entries e
  WHERE e.project_id = $1 AND ${within('e.session_id')} AND ${notErased('e.session_id')}
  WINDOW log AS (PARTITION BY e.session_id ORDER BY e.seq),
    before AS (log ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
    same_kind AS (PARTITION BY e.session_id, e.kind ORDER BY e.seq)
), retraction AS MATERIALIZED (
  SELECT l.session_id, l.seq AS retraction_seq, x.seq::bigint AS seq
  FROM log l CROSS JOIN LATERAL jsonb_array_elements_text(l.retracted_seqs) AS x (seq)
  WHERE jsonb_typeof(l.retracted_seqs) = 'array' AND x.seq ~ '^[0-9]{1,18}$'
), mark AS MATERIALIZED (
  SELECT coalesce(l.session_id, r.session_id) AS session_id, coalesce(l.seq, r.seq) AS seq, l.retracted_by, r.retraction_seq
  FROM (SELECT m.session_id, m.seq, m.retracted_by FROM log m WHERE m.retracted_by IS NOT NULL) l
  FULL JOIN retraction r ON r.session_id = l.session_id AND r.seq = l.seq AND r.retraction_seq = l.retracted_by
), compaction AS MATERIALIZED (
  SELECT l.session_id, l.seq, l.compacted AS digest, l.from_seq, l.to_seq,
    row_number() OVER (PARTITION BY l.session_id ORDER BY l.seq DESC) = 1 AS is_newest
  FROM log l WHERE l.compacted IS NOT NULL AND l.retracted_by IS NULL
), sums AS MATERIALIZED (
  SELECT l.session_id, count(*) AS entries, count(*) FILTER (WHERE l.kind = 'message') AS messages, max(l.seq) AS last_seq,
    sum(l.tokens) FILTER (WHERE l.retracted_by IS NULL) AS tokens, sum(l.bytes) AS bytes, greatest(max(l.created_at), max(l.updated_at)) AS updated_at,
    max(l.id::text) FILTER (WHERE l.is_last AND l.kind = 'message')::uuid AS last_message_id,
    max(l.seq) FILTER (WHERE l.is_retraction) AS retraction_seq, max(l.live_before) FILTER (WHERE l.is_retraction) AS live_seq
  FROM log l GROUP BY l.session_id
), whole AS MATERIALIZED (
  SELECT coalesce(s.id, h.session_id, p.session_id) AS session_id,
    s.id, s.user_id, s.parent_id, s.expires_in_s, s.expiry_due_at, s.created_at, s.terms, s.signature,
    h.session_id IS NOT NULL AS has_head, h.last_seq, h.total_tokens, h.last_message_id, h.updated_at,
    h.bytes, h.counted, h.retraction_seq, coalesce(h.live_seq, 0) AS live_seq,
    p.retraction_seq AS entries_retraction_seq, p.live_seq AS entries_live_seq,
    coalesce(p.entries, 0) AS entries, coalesce(p.messages, 0) AS messages, coalesce(p.last_seq, 0) AS entries_last_seq,
    coalesce(p.tokens, 0) AS entries_tokens, coalesce(p.bytes, 0) AS entries_bytes,
    p.last_message_id AS entries_last_message_id, p.updated_at AS entries_updated_at
  FROM session s FULL JOIN head h ON h.session_id = s.id
  FULL JOIN sums p ON p.session_id = coalesce(s.id, h.session_id)
)${findingsSql(
    SESSION_CHECKS,
    `SELECT json_build_object('sessions', count(w.id), 'entries', coalesce(sum(w.entries), 0),
  'messages', coalesce(sum(w.messages), 0), 'tokens', coalesce(sum(w.entries_tokens), 0),
  'bytes', coalesce(sum(w.entries_bytes), 0),
  'rows', count(w.id) + count(*) FILTER (WHERE w.has_head) + coalesce(sum(cardinality(w.terms)) + sum(w.entries), 0))
FROM whole w`,
  )}`,
)

/**
 * The end of a piece of sessions with about as many entries, and no more sessions, than given; null: the rest is one
 * piece. A session is never divided. Parameters: $1 project, $2 id to start after or null, $3 entries, $4 sessions.
 */
export const NEXT_SESSIONS = planned(
  'verify_next_sessions',
  `
SELECT least(
  (SELECT e.session_id FROM entries e WHERE e.project_id = $1 AND ($2::uuid IS NULL OR e.session_id > $2)
   ORDER BY e.session_id, e.seq OFFSET $3 LIMIT 1),
  (SELECT h.session_id FROM session_heads h WHERE h.project_id = $1 AND ($2::uuid IS NULL OR h.session_id > $2)
   ORDER BY h.session_id OFFSET $4 LIMIT 1),
  (SELECT s.id FROM sessions s WHERE s.project_id = $1 AND ($2::uuid IS NULL OR s.id > $2)
   ORDER BY s.id OFFSET $4 LIMIT 1)) AS last_id`,
)
