import { timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'
import { RETRACTION_TYPE } from './append_request.js'

/** The seqs that requests with idempotency keys were answered with. Parameters: $1 project, $2 keys. */
export const FIND_APPEND_KEYS = prepared(
  'find_append_keys',
  `
SELECT k.key, k.request_hash, coalesce(array_to_string(k.seqs, ','), k.answer) AS seqs
FROM unnest($2::text[]) AS x(key)
JOIN LATERAL (
  SELECT p.key, p.request_hash, p.seqs, p.answer FROM idempotency_keys p WHERE p.project_id = $1 AND p.key = x.key LIMIT 1
) k ON true`,
)

/**
 * Entries that are already stored, by session and id, and whether they differ from those to be stored under the same
 * ids; the data of a retraction is not the caller's. `place` (from 1) is the index of the given entry. Parameters: $1 project; one element per entry: $2 session,
 * $3 id, $4 kind, $5 type, $6 format, $7 key, $8 data and $9 meta as JSON arrays, $10 when it happened.
 */
export const FIND_KNOWN_APPENDS = prepared(
  'find_known_appends',
  `
SELECT x.place, e.seq, e.kind <> x.kind OR e.type IS DISTINCT FROM x.type OR e.format IS DISTINCT FROM x.format
  OR e.key IS DISTINCT FROM x.key OR e.data <> x.data AND e.type IS DISTINCT FROM '${RETRACTION_TYPE}'
  OR e.meta IS DISTINCT FROM nullif(x.meta, 'null') OR e.occurred_at IS DISTINCT FROM x.occurred_at AS differs
FROM ROWS FROM (
  unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $10::timestamptz[]),
  jsonb_array_elements($8::jsonb), jsonb_array_elements($9::jsonb)
) WITH ORDINALITY AS x(session_id, id, kind, type, format, key, occurred_at, data, meta, place)
JOIN LATERAL (
  SELECT o.seq, o.kind, o.type, o.format, o.key, o.data, o.meta, o.occurred_at
  FROM entries o WHERE o.project_id = $1 AND o.session_id = x.session_id AND o.id = x.id LIMIT 1
) e ON true`,
)

/**
 * Entries by their seqs, in the given order, for the answers to retries: what was stored, as it was first answered.
 * Parameters: $1 project, $2 session, $3 seqs.
 */
export const READ_APPENDED_ENTRIES = prepared(
  'read_appended_entries',
  `
SELECT e.seq, e.id, e.kind, e.type, e.format, e.role, e.key, e.data::text AS data, e.meta::text AS meta, e.parent_id,
  ${timestampText('e.created_at')} AS time, ${timestampText('e.occurred_at')} AS occurred_at, s.disable_task_tracking
FROM unnest($3::bigint[]) WITH ORDINALITY AS w(seq, ord)
JOIN entries e ON e.project_id = $1 AND e.session_id = $2 AND e.seq = w.seq
JOIN sessions s ON s.project_id = $1 AND s.id = $2
ORDER BY w.ord`,
)

/** Rows: sha256, of the blobs that there are. Parameters: $1 project, $2 hashes. */
export const FIND_REFERRED_BLOBS = prepared(
  'find_referred_blobs',
  'SELECT b.sha256 FROM blobs b WHERE b.project_id = $1 AND b.sha256 = ANY ($2::text[])',
)
