import { passStatements } from '../../changes/project_pass.js'
import { timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'
import { storedFunction } from '../../postgres/stored_function.js'
import { SCOPES } from '../find_entries_queries.js'

/** Segments that are looked through, the newest ones, at most: eight million entries. */
const SEGMENTS_MAX = 512
/** Segments that tell how frequent a word is: the newest ones. */
const SAMPLED_SEGMENTS = 2
/** Segments that are searched for entries with all words where each of these is frequent. */
const FREQUENT_SEGMENTS = 8
const RUN_ENTRIES = 16
/** Words that are looked up whatever the time: the rarest ones. On a busy machine, a question would find nothing. */
const ALWAYS_WORDS = 2

/** Parameters: $1 project, $2 scopes to have one of, $3 to have all of, or null, $4 words, $5 from, $6 to, $7 how many. */
const FIND_RUNS = `SELECT array_agg(f.session_id), array_agg(f.seq), count(*) FROM (
  SELECT c.session_id, c.seq FROM search_entries c
  WHERE c.project_id = $1 AND ${SCOPES} && $2 AND ($3 IS NULL OR ${SCOPES} @> $3) AND c.words::tsvector @@ $4
    AND c.last_at >= $5 AND c.first_at <= $6
  ORDER BY c.last_at DESC LIMIT $7) f`

/** Parameters: $1 project, $2 scopes to have one of, $3 to have all of, or null, $4 words, or null for all runs. */
const COUNT_RUNS = `SELECT count(*) FROM search_entries c
  WHERE c.project_id = $1 AND ${SCOPES} && $2 AND ($3 IS NULL OR ${SCOPES} @> $3) AND ($4 IS NULL OR c.words::tsvector @@ $4)`

/**
 * Finds runs of entries that have some of the words, those with the rarest ones first. A sample says how frequent each is;
 * a rare word is looked up in all segments, a frequent one in as many of the newest as leave p_hits runs in all. After
 * about p_ms, only the rarest words are looked up. Answer, as JSON: `complete`, whether all runs that have any of the words are in `runs`;
 * `weights`, how much each word tells; `runs`, [session_id, seq, words, when the first happened, in ms] of p_runs at most.
 *
 * p_words: by word of the question, what a run must have of it; p_all: all of them. p_scopes: what a run must have all of;
 * p_sessions: ids, of one of which it must be.
 */
export const FIND_RUNS_TO_RECALL = storedFunction(
  'find_runs_to_recall',
  `p_project uuid, p_words tsquery[], p_all tsquery, p_scopes text[], p_sessions uuid[], p_configs jsonb, p_from timestamptz,
  p_to timestamptz, p_hits int, p_runs int, p_ms int`,
  `DECLARE
  until timestamptz := clock_timestamp() + make_interval(secs => p_ms / 1000.0);
  segments text[];
  sample text[];
  searched text[];
  sampled_runs float8;
  all_runs float8;
  scale float8 := 1;
  counts float8[] := '{}';
  counted bigint;
  weights float8[] := array_fill(0::float8, ARRAY[cardinality(p_words)]);
  weight float8;
  of_one uuid[];
  of_seqs bigint[];
  found_sessions uuid[] := '{}';
  found_seqs bigint[] := '{}';
  found_weights float8[] := '{}';
  hits_left int := p_hits;
  is_whole boolean;
  complete boolean := true;
  place int;
  rank int;
BEGIN
  IF p_sessions IS NOT NULL THEN
    SELECT array_agg('s' || h.session_id), sum(h.last_seq) INTO segments, all_runs
    FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions);
    all_runs := greatest(all_runs / ${RUN_ENTRIES}, 1);
    sample := NULL;
  ELSE
    SELECT array_agg(p_project::text || ' ' || s.segment ORDER BY s.segment DESC), greatest(sum(s.entries) / ${RUN_ENTRIES}, 1)
    INTO segments, all_runs
    FROM (
      SELECT s.segment, s.entries FROM search_segments s
      WHERE s.project_id = p_project AND s.entries > 0 AND (s.begins_at <= p_to OR s.first_at <= p_to) ORDER BY s.segment DESC LIMIT ${SEGMENTS_MAX}
    ) s;
    sample := segments[1:${SAMPLED_SEGMENTS}];
  END IF;
  IF segments IS NULL THEN
    RETURN '{"complete":true,"weights":[],"runs":[]}';
  END IF;
  PERFORM set_config('enable_indexscan', 'off', true);
  IF sample IS NOT NULL THEN
    EXECUTE $query$${COUNT_RUNS}$query$ INTO counted USING p_project, sample, p_scopes, NULL::tsquery;
    sampled_runs := greatest(counted, 1);
    SELECT greatest(sum(s.entries), 1) INTO scale FROM (
      SELECT s.entries FROM search_segments s
      WHERE s.project_id = p_project AND s.entries > 0 AND (s.begins_at <= p_to OR s.first_at <= p_to) ORDER BY s.segment DESC LIMIT ${SAMPLED_SEGMENTS}) s;
    scale := greatest(all_runs * ${RUN_ENTRIES} / scale, 1);
    all_runs := greatest(sampled_runs * scale, 1);
  END IF;
  FOR place IN 1..cardinality(p_words) LOOP
    IF sample IS NULL THEN
      counted := 0;
    ELSE
      EXECUTE $query$${COUNT_RUNS}$query$ INTO counted USING p_project, sample, p_scopes, p_words[place];
    END IF;
    counts := counts || counted * scale;
  END LOOP;
  -- Where every word is frequent, the newest runs of each would hide those that have them all.
  IF cardinality(p_words) > 1 AND p_all IS NOT NULL AND (SELECT min(x.n) FROM unnest(counts) AS x (n)) > p_hits THEN
    EXECUTE $query$${FIND_RUNS}$query$ INTO of_one, of_seqs, counted
      USING p_project, segments[1:${FREQUENT_SEGMENTS}], p_scopes, p_all, p_from, p_to, p_runs;
    IF counted > 0 THEN
      found_sessions := of_one;
      found_seqs := of_seqs;
      found_weights := array_fill((SELECT sum(ln(1 + (greatest(all_runs - x.n, 0) + 0.5) / (x.n + 0.5))) FROM unnest(counts) AS x (n)),
        ARRAY[counted::int]);
    END IF;
  END IF;
  FOR place, rank IN
    SELECT x.place, row_number() OVER (ORDER BY x.n) FROM unnest(counts) WITH ORDINALITY AS x (n, place) ORDER BY x.n
  LOOP
    searched := segments;
    IF sample IS NOT NULL AND counts[place] > hits_left THEN
      searched := segments[1:greatest(floor(cardinality(segments) * hits_left / counts[place])::int, 1)];
    END IF;
    is_whole := cardinality(searched) = cardinality(segments);
    counted := 0;
    IF hits_left > 0 AND (rank <= ${ALWAYS_WORDS} OR clock_timestamp() < until) THEN
      EXECUTE $query$${FIND_RUNS}$query$ INTO of_one, of_seqs, counted
        USING p_project, searched, p_scopes, p_words[place], p_from, p_to, hits_left;
    ELSE
      is_whole := false;
    END IF;
    is_whole := is_whole AND counted < hits_left;
    complete := complete AND is_whole;
    weight := CASE WHEN is_whole THEN counted ELSE greatest(counts[place], counted) END;
    weight := ln(1 + (greatest(all_runs - weight, 0) + 0.5) / (weight + 0.5));
    weights[place] := weight;
    IF counted > 0 THEN
      found_sessions := found_sessions || of_one;
      found_seqs := found_seqs || of_seqs;
      found_weights := found_weights || array_fill(weight, ARRAY[counted::int]);
      hits_left := hits_left - counted;
    END IF;
  END LOOP;
  PERFORM set_config('enable_indexscan', 'on', true);
  RETURN (
    SELECT json_build_object('complete', complete AND p_runs >= (
        SELECT count(*) FROM (SELECT DISTINCT f.session_id, f.seq FROM unnest(found_sessions, found_seqs) AS f (session_id, seq)) f),
      'weights', weights,
      'runs', coalesce(json_agg(json_build_array(r.session_id, r.seq, r.words, floor(extract(epoch FROM r.first_at) * 1000))), '[]'))
    FROM (
      SELECT g.session_id, g.seq, w.words, w.first_at
      FROM (
        SELECT f.session_id, f.seq FROM unnest(found_sessions, found_seqs, found_weights) AS f (session_id, seq, weight)
        GROUP BY f.session_id, f.seq ORDER BY sum(f.weight) DESC, f.session_id DESC, f.seq DESC
      ) g
      CROSS JOIN LATERAL (
        SELECT FROM sessions s WHERE s.project_id = p_project AND s.id = g.session_id
          AND (p_configs IS NULL OR s.configs @> p_configs) OFFSET 0
      ) s
      CROSS JOIN LATERAL (
        SELECT c.words, c.first_at FROM search_entries c WHERE c.project_id = p_project AND c.session_id = g.session_id AND c.seq = g.seq OFFSET 0
      ) w
      LIMIT p_runs
    ) r);
END`,
  {
    enable_seqscan: 'off',
    enable_indexscan: 'on',
    enable_indexonlyscan: 'off',
    enable_bitmapscan: 'on',
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    cpu_tuple_cost: '100',
    jit: 'off',
    plan_cache_mode: 'auto',
  },
)

/** Bytes of entries that are read at once, from the first on: none after these, whatever a caller stored. */
const READ_BYTES_MAX = 4 * 1024 * 1024

/**
 * Entries that a question may be answered with, if they are there to be found: not retracted, of no session that has
 * expired, and in all filters. Parameters: $1 project, $2 sessions, $3 seqs, $4 kind, $5 type, $6 role, $7 user's id,
 * $8 configs, $9 from, $10 to, each of these null or a value. Rows in any order.
 */
export const READ_RECALLED = prepared(
  'read_recalled_entries',
  `
SELECT i.session_id, i.seq, i.kind, i.type, i.role, i.format, i.data::text AS data, ${timestampText('i.created_at')} AS created_at,
  ${timestampText('i.occurred_at')} AS occurred_at
FROM (
SELECT e.*, sum(e.bytes) OVER (ORDER BY r.place) - e.bytes AS bytes_before
FROM unnest($2::uuid[], $3::bigint[]) WITH ORDINALITY AS r (session_id, seq, place)
CROSS JOIN LATERAL (
  SELECT o.* FROM entries o
  WHERE o.project_id = $1 AND o.session_id = r.session_id AND o.seq = r.seq AND o.retracted_by IS NULL
    AND ($4::text IS NULL OR o.kind = $4) AND ($5::text IS NULL OR o.type = $5) AND ($6::text IS NULL OR o.role = $6)
    AND ($9::timestamptz IS NULL OR least(o.occurred_at, o.created_at) >= $9)
    AND ($10::timestamptz IS NULL OR least(o.occurred_at, o.created_at) <= $10) OFFSET 0) e
CROSS JOIN LATERAL (
  SELECT h.updated_at FROM session_heads h WHERE h.project_id = $1 AND h.session_id = r.session_id OFFSET 0) h
CROSS JOIN LATERAL (
  SELECT FROM sessions o
  WHERE o.project_id = $1 AND o.id = r.session_id AND ($7::uuid IS NULL OR o.user_id = $7)
    AND ($8::jsonb IS NULL OR o.configs @> $8)
    AND (h.updated_at + make_interval(secs => o.expires_in_s) <= now()) IS NOT TRUE OFFSET 0) s
) i WHERE i.bytes_before < ${READ_BYTES_MAX}`,
)

/** Messages of a session that its title is looked for in. */
const TITLE_SEQ_MAX = 16
const TITLE_BYTES_MAX = 32 * 1024

/**
 * What sessions are called: a title in their configs, or else the first thing that a user said. Parameters: $1 project,
 * $2 sessions. Rows: session_id, created_at, title; format and data of the message.
 */
export const READ_TITLES = prepared(
  'read_titles_of_sessions',
  `
SELECT s.id AS session_id, ${timestampText('s.created_at')} AS created_at,
  CASE WHEN jsonb_typeof(s.configs -> 'title') = 'string' THEN left(s.configs ->> 'title', 480) END AS title, e.format, e.data::text AS data
FROM sessions s
LEFT JOIN LATERAL (
  SELECT o.format, o.data FROM entries o
  WHERE o.project_id = $1 AND o.session_id = s.id AND o.seq <= ${TITLE_SEQ_MAX} AND o.kind = 'message' AND o.role = 'user'
    AND o.bytes <= ${TITLE_BYTES_MAX} AND o.retracted_by IS NULL
  ORDER BY o.seq LIMIT 1) e ON true
WHERE s.project_id = $1 AND s.id = ANY ($2)`,
)

/** Writes lines anew: projects of which an older version wrote some. */
export const REFILL_PASS = passStatements({
  table: 'search_refills',
  name: 'search_refill',
  counts: 'entries_done',
})

/** Parameters of each: $1 project. */
export const REFILL = {
  /** The next runs. $2 session and $3 seq to begin after, $4 how many. Rows: session_id, seq, last_seq. */
  runs: prepared(
    'read_runs_to_refill',
    `SELECT c.session_id, c.seq, c.last_seq FROM search_entries c
WHERE c.project_id = $1 AND (c.session_id, c.seq) > ($2, $3) ORDER BY c.session_id, c.seq LIMIT $4`,
  ),
  /** Writes lines anew of runs that are as they were. $2 sessions, $3 seqs, $4 last seqs, $5 words. Rows: one each. */
  write: prepared(
    'refill_runs',
    `UPDATE search_entries AS c SET words = r.words
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[]) AS r (session_id, seq, last_seq, words)
WHERE c.project_id = $1 AND c.session_id = r.session_id AND c.seq = r.seq AND c.last_seq = r.last_seq RETURNING 1 AS done`,
  ),
  /** How far it is. Row: entries_done, entries, while it is not done. */
  progress: prepared(
    'read_search_refill',
    `SELECT r.entries_done,
  (SELECT coalesce(sum(s.entries), 0) FROM search_segments s WHERE s.project_id = $1) AS entries
FROM search_refills r WHERE r.project_id = $1`,
  ),
} as const
