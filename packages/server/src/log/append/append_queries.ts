import { timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'

const STORE = `WITH head AS MATERIALIZED (
  SELECT g.ord, g.session_id, g.new_entries, g.new_tokens, g.new_bytes, g.new_last_message_id, h.last_seq, h.last_message_id,
    greatest(now(), h.updated_at) AS at, CASE WHEN g.has_messages THEN (
      SELECT s.disable_task_tracking FROM sessions s WHERE s.project_id = $1 AND s.id = g.session_id
    ) END AS disable_task_tracking,
    h.last_seq IS NOT NULL AND (g.if_match IS NULL OR g.if_match = h.last_seq) AS open
  FROM unnest($2::uuid[], $3::bigint[], $4::int[], $5::bigint[], $6::uuid[], $7::boolean[], $8::bigint[])
    WITH ORDINALITY AS g(session_id, if_match, new_entries, new_tokens, new_last_message_id, has_messages, new_bytes, ord)
  LEFT JOIN LATERAL (
    SELECT h.last_seq, h.last_message_id, h.updated_at
    FROM session_heads h WHERE h.project_id = $1 AND h.session_id = g.session_id
    FOR UPDATE
  ) h ON true
), moved AS (
  UPDATE session_heads AS h
  SET last_seq = d.last_seq + d.new_entries, total_tokens = h.total_tokens + d.new_tokens, updated_at = d.at,
    bytes = h.bytes + d.new_bytes, counted = h.counted + d.new_entries, last_message_id = coalesce(d.new_last_message_id, d.last_message_id)
  FROM head d
  WHERE d.open AND d.new_entries > 0 AND d.ord > 0 AND h.project_id = $1 AND h.session_id = ANY (ARRAY[d.session_id])
), found AS MATERIALIZED (
  SELECT array_agg(CASE WHEN d.open THEN d.last_seq ELSE -1 END ORDER BY d.ord) AS seqs,
    array_agg(d.at ORDER BY d.ord) AS times, array_agg(d.last_message_id ORDER BY d.ord) AS last_message_ids
  FROM head d
), inserted AS (
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens,
    kind, type, role, format, data, meta)
  SELECT $1, ($2::uuid[])[i.place], f.seqs[i.place] + i.behind, f.times[i.place], f.times[i.place], i.id,
    CASE WHEN i.is_first_message THEN f.last_message_ids[i.place] ELSE i.parent_id END, i.bytes, i.tokens,
    i.kind, i.type, i.role, i.format, i.data, nullif(i.meta, 'null')
  FROM found f, ROWS FROM (
    unnest($9::int[], $10::int[], $11::uuid[], $12::uuid[], $13::boolean[], $14::int[], $15::int[], $16::text[],
      $17::text[], $18::text[], $19::text[]),
    jsonb_array_elements($20::jsonb), jsonb_array_elements($21::jsonb)
  ) AS i (place, behind, id, parent_id, is_first_message, bytes, tokens, kind, type, role, format, data, meta)
  WHERE f.seqs[i.place] >= 0
)`

const REMEMBER = `remembered AS (
  INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, seqs)
  SELECT $1, k.key, k.request_hash, ($2::uuid[])[k.place], now(), (
      SELECT array_agg(CASE WHEN x.behind > 0 THEN f.seqs[k.place] + x.behind ELSE x.known_seq END ORDER BY x.ord)
      FROM unnest(($27::int[])[k.first:k.last], ($28::bigint[])[k.first:k.last]) WITH ORDINALITY
        AS x(behind, known_seq, ord)
    )
  FROM found f, unnest($22::text[], $23::text[], $24::int[], $25::int[], $26::int[])
    AS k(key, request_hash, place, first, last)
  WHERE f.seqs[k.place] >= 0
)`

const FOUND = `SELECT string_agg(coalesce(d.last_seq::text, ''), ',' ORDER BY d.ord) AS last_seqs,
  string_agg(CASE WHEN d.at <> now() THEN ${timestampText('d.at')} ELSE '' END, ',' ORDER BY d.ord) AS times,
  string_agg(coalesce(d.last_message_id::text, ''), ',' ORDER BY d.ord) AS last_message_ids,
  string_agg(CASE WHEN d.disable_task_tracking THEN 't' ELSE 'f' END, '' ORDER BY d.ord) AS untracked,
  ${timestampText('now()')} AS now, NULL AS place, NULL AS data, NULL AS meta
FROM head d`

/**
 * One flush: every append of one project that waited for the same commit, in one statement.
 *
 * It locks the head rows of the sessions in the given order (log/append/flush_plan.ts sorts them, so that two flushes
 * cannot deadlock), numbers the entries after the heads that it finds, inserts them, and moves the heads. A session
 * that does not exist, or whose If-Match no longer holds, stores nothing and does not affect the others. Entries
 * stored before under an idempotency key or an id were found by the two look-ups below. If another flush, of this
 * node or another, stores one in between, a unique violation follows, and the flush is run again. Keys are inserted
 * in a fixed order, so that two flushes cannot deadlock over them either.
 *
 * Every microsecond counts, since this is the cost of an append. So the statement leaves the planner no choice: heads
 * are found one by one, through LATERAL, in the given order; an entry finds its session by its index in an array,
 * without a join; and what the answer needs comes back as one row. The heads are moved one by one as well: because of
 * `d.ord > 0`, which is always true, the planner expects one row instead of two, and `ANY` keeps it from counting on
 * a unique match. Otherwise, a plan made while the tables were empty reads all heads of the project.
 *
 * Parameters: $1 project. One element per session: $2 session, $3 if_match, $4 number of new entries, $5 their
 * tokens, $6 the last new message, $7 whether there are messages, $8 the bytes of the new entries. One element per
 * entry: $9 index of its session (from 1), $10 position after the head (from 1), $11 id, $12 the previous message in
 * this flush, $13 whether it is the first message in it, $14 bytes, $15 tokens, $16 kind, $17 type, $18 role, $19
 * format, $20 data and $21 meta as JSON arrays. Of $3, $6, $7, $12, $13, $18, $19 and $21, an array without any value
 * may be empty.
 *
 * Rows: one, with `now`, the time of most entries, and for the sessions in order, separated by commas: the last seq
 * before this flush (empty: no such session), the time if it is later than `now` (else empty, because times are
 * expensive to write), the last message before (or empty), and one letter for task tracking (t if disabled).
 */
export const APPEND_ENTRIES = prepared('append_entries', `${STORE}\n${FOUND}`)

/**
 * The same for a flush with idempotency keys or callers' ids. It is separate because preparing for them costs every
 * small flush a tenth.
 *
 * Further parameters: one element per key: $22 key, $23 request hash, $24 index of its session, $25 and $26 first and
 * last index of its seqs in $27 (positions after the head, 0 for an entry stored before) and $28 (the seqs of those).
 * $29 indexes (from 1) of the entries whose data and meta are returned as the database writes them.
 *
 * Further rows: one for each element of $29, with its index, data and meta.
 */
export const APPEND_ENTRIES_AND_KEYS = prepared(
  'append_entries_and_keys',
  `${STORE}, ${REMEMBER}
${FOUND}
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, w.place::text, ($20::jsonb -> (w.place - 1))::text,
  nullif($21::jsonb -> (w.place - 1), 'null')::text
FROM unnest($29::int[]) AS w(place)`,
)

/** The index in `found` of an event's session. */
const FOUND_PLACE = 'CASE WHEN f.complete THEN i.place ELSE array_position(f.places, i.place) END'

/**
 * The same for a flush of only events, without conditions, keys and callers' ids, which most flushes are. The heads
 * need not be known before they are moved, so this moves them at once and numbers the entries by the result, which
 * costs an eighth less. Only for a database that `keepsPlans`: that heads are locked in the given order, as by
 * APPEND_ENTRIES, depends on the plan, in which the sessions are the outer side. `ord > 0` and `new_events > 0`,
 * always true, make the planner expect one of them.
 *
 * Parameters: $1 project. One element per session: $2 session, $3 number of new events, $4 their bytes. One element
 * per event: $5 index of its session (from 1), $6 position after the head (from 1), $7 id, $8 bytes, $9 type, $10
 * data as a JSON array.
 *
 * Rows: one, as of APPEND_ENTRIES, without what only messages need, and only for the sessions that exist: `places`
 * has their indexes (from 1), or null if none is missing. `times` is empty if all are `now`.
 */
export const APPEND_EVENTS = prepared(
  'append_events',
  `WITH moved AS (
  UPDATE session_heads AS h
  SET last_seq = h.last_seq + g.new_events, updated_at = greatest(now(), h.updated_at), bytes = h.bytes + g.new_bytes,
    counted = h.counted + g.new_events
  FROM unnest($2::uuid[], $3::int[], $4::bigint[]) WITH ORDINALITY AS g(session_id, new_events, new_bytes, ord)
  WHERE g.ord > 0 AND g.new_events > 0 AND h.project_id = $1 AND h.session_id = ANY (ARRAY[g.session_id])
  RETURNING g.ord::int AS place, h.last_seq - g.new_events AS last_seq, h.updated_at AS at
), found AS MATERIALIZED (
  SELECT array_agg(m.place ORDER BY m.place) AS places, array_agg(m.last_seq ORDER BY m.place) AS seqs,
    array_agg(m.at ORDER BY m.place) AS times, count(*) = cardinality($2::uuid[]) AS complete
  FROM moved m
), inserted AS (
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
  SELECT $1, ($2::uuid[])[i.place], f.seqs[${FOUND_PLACE}] + i.behind, f.times[${FOUND_PLACE}], f.times[${FOUND_PLACE}],
    i.id, i.bytes, 0, 'event', i.type, i.data
  FROM found f, ROWS FROM (
    unnest($5::int[], $6::int[], $7::uuid[], $8::int[], $9::text[]), jsonb_array_elements($10::jsonb)
  ) AS i (place, behind, id, bytes, type, data)
  WHERE f.complete OR i.place = ANY (f.places)
)
SELECT CASE WHEN NOT f.complete THEN coalesce(array_to_string(f.places, ','), '') END AS places,
  array_to_string(f.seqs, ',') AS last_seqs,
  CASE WHEN now() = ALL (f.times) THEN '' ELSE (
    SELECT string_agg(CASE WHEN t.at <> now() THEN ${timestampText('t.at')} ELSE '' END, ',' ORDER BY t.ord)
    FROM unnest(f.times) WITH ORDINALITY AS t(at, ord)
  ) END AS times,
  '' AS last_message_ids, '' AS untracked, ${timestampText('now()')} AS now, NULL AS place, NULL AS data, NULL AS meta
FROM found f`,
)

/** The answers to idempotency keys. Parameters: $1 project, $2 keys. */
export const FIND_APPEND_KEYS = prepared(
  'find_append_keys',
  `
SELECT k.key, k.request_hash, k.owner_id, array_to_string(k.seqs, ',') AS seqs
FROM unnest($2::text[]) AS x(key)
JOIN LATERAL (
  SELECT p.key, p.request_hash, p.owner_id, p.seqs FROM idempotency_keys p WHERE p.project_id = $1 AND p.key = x.key LIMIT 1
) k ON true`,
)

/**
 * Entries that are already stored, by session and id, and whether they differ from those to be stored under the same
 * ids. `place` (from 1) is the index of the given entry. Parameters: $1 project; one element per entry: $2 session,
 * $3 id, $4 kind, $5 type, $6 format, $7 data and $8 meta as JSON arrays.
 */
export const FIND_KNOWN_APPENDS = prepared(
  'find_known_appends',
  `
SELECT x.place, e.seq, e.kind <> x.kind OR e.type IS DISTINCT FROM x.type OR e.format IS DISTINCT FROM x.format
  OR e.data <> x.data OR e.meta IS DISTINCT FROM nullif(x.meta, 'null') AS differs
FROM ROWS FROM (
  unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[]),
  jsonb_array_elements($7::jsonb), jsonb_array_elements($8::jsonb)
) WITH ORDINALITY AS x(session_id, id, kind, type, format, data, meta, place)
JOIN LATERAL (
  SELECT o.seq, o.kind, o.type, o.format, o.data, o.meta
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
SELECT e.seq, e.id, e.kind, e.type, e.format, e.role, e.data::text AS data, e.meta::text AS meta, e.parent_id,
  ${timestampText('e.created_at')} AS time, s.disable_task_tracking
FROM unnest($3::bigint[]) WITH ORDINALITY AS w(seq, ord)
JOIN entries e ON e.project_id = $1 AND e.session_id = $2 AND e.seq = w.seq
JOIN sessions s ON s.project_id = $1 AND s.id = $2
ORDER BY w.ord`,
)
