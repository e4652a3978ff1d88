import { timestampText } from '../lists/resource_json.js'
import type { StoredFunction } from '../postgres/stored_function.js'
import { storedFunction } from '../postgres/stored_function.js'
import { SEGMENT_ENTRIES } from './search_queries.js'

/** What narrows a search inside the index: must be what the index is made of, to the letter. */
const SCOPES = `ARRAY[c.project_id::text || ' ' || c.segment::text, 's' || c.session_id::text, 'u' || c.user_id::text]`

/**
 * Runs, planned each time that they are looked for: with a plan from when there were few it would read all of a project.
 * Parameters: $1 project, $2 segments, $3 scopes to have all of, $4 to have one of, $5 words, $6 from, $7 to.
 */
const FIND_RUNS = `SELECT c.session_id, c.seq, c.last_at FROM search_entries c
WHERE c.project_id = $1 AND ${SCOPES} && $2 AND ${SCOPES} @> $3 AND ${SCOPES} && $4 AND c.words::tsvector @@ $5
  AND c.last_at >= $6 AND c.first_at <= $7
ORDER BY c.last_at DESC, c.session_id DESC, c.seq DESC`

/**
 * Segments that are searched at once, at most: where the page is not full yet, the more the further it goes. Those that
 * have few runs to look at cost little more together than each by itself.
 */
const SEGMENTS_MAX = 8
const SPARSE_SEGMENTS_MAX = 64
const SPARSE_RUNS = 64

/** Sessions with no more entries than these are searched without going through segments. */
const ENTRIES_AT_ONCE_MAX = SEGMENTS_MAX * SEGMENT_ENTRIES

/** Runs that are looked at whatever the time. */
const RUNS_MIN = 8

/** What ends it; the place before which everything was looked at is that of the variables. */
const ANSWER = `RETURN (
  SELECT json_build_object(
    'hits', coalesce(json_agg(json_build_array(h.session_id, h.seq, ${timestampText('h.at')}, h.bytes)
      ORDER BY h.at DESC, h.session_id DESC, h.seq DESC), '[]'),
    'at', CASE WHEN rest_at > '-infinity' THEN json_build_array(${timestampText('rest_at')}, rest_session, rest_seq) END)
  FROM (
    SELECT * FROM unnest(found_at, found_sessions, found_seqs, found_bytes) AS f (at, session_id, seq, bytes)
    WHERE (f.at, f.session_id) >= (rest_at, rest_session)
    ORDER BY f.at DESC, f.session_id DESC, f.seq DESC LIMIT p_limit
  ) h);`

/**
 * Finds entries by their words, the newest first, from a position on that is part of it if p_seq is null. The words come
 * from an index of runs of entries, in no order, so it goes from segment to segment and through the runs of each, those
 * that end last first, until none is left that has anything newer than what fills the page; and looks at the log whether
 * an entry is still there to be found.
 *
 * It ends after about p_ms, wherever it is, but not before it has looked at some runs. Answer, as JSON: `hits`,
 * [session_id, seq, created_at, bytes] of p_limit at most; `at`, where fewer are given though there may be more: the
 * position that it came to.
 *
 * p_together: what a run must have, p_each: what an entry must have, p_longest: the longest word in it. p_scopes: those
 * that a run must have all of; p_sessions: ids, of one of which it must be. The other filters may be null.
 */
export const FIND_ENTRIES: StoredFunction = storedFunction(
  'find_entries',
  `p_project uuid, p_together tsquery, p_each tsquery, p_longest text, p_scopes text[], p_sessions uuid[], p_kind text,
  p_type text, p_role text, p_configs jsonb, p_from timestamptz, p_at timestamptz, p_session uuid, p_seq bigint,
  p_limit int, p_ms int`,
  `DECLARE
  until timestamptz := clock_timestamp() + make_interval(secs => p_ms / 1000.0);
  at_session uuid := coalesce(p_session, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  at_seq bigint := coalesce(p_seq, 9007199254740991);
  found_at timestamptz[] := '{}';
  found_sessions uuid[] := '{}';
  found_seqs bigint[] := '{}';
  found_bytes bigint[] := '{}';
  full_at timestamptz := '-infinity';
  rest_at timestamptz := '-infinity';
  rest_session uuid := '00000000-0000-0000-0000-000000000000';
  rest_seq bigint := 0;
  of_sessions text[];
  is_one_step boolean := false;
  segments text[];
  segments_max int := 1;
  last_segment int := 2147483647;
  begins timestamptz;
  runs int := 0;
  seen int;
  touched timestamptz;
  run_words text;
  c record;
  l record;
  e record;
BEGIN
  IF p_sessions IS NOT NULL THEN
    SELECT array_agg('s' || x.id) INTO of_sessions FROM unnest(p_sessions) AS x (id);
    SELECT sum(h.last_seq) <= ${ENTRIES_AT_ONCE_MAX} INTO is_one_step FROM session_heads h
    WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions);
  END IF;
  LOOP
    segments := '{}';
    FOR c IN
      SELECT s.segment, s.begins_at FROM search_segments s
      WHERE s.project_id = p_project AND s.segment < last_segment AND s.begins_at <= p_at
      ORDER BY s.segment DESC LIMIT segments_max
    LOOP
      segments := array_append(segments, p_project::text || ' ' || c.segment::text);
      last_segment := c.segment;
      begins := c.begins_at;
    END LOOP;
    EXIT WHEN segments = '{}';
    IF is_one_step THEN
      segments := of_sessions;
      begins := '-infinity';
    END IF;
    seen := 0;
    FOR c IN EXECUTE $query$${FIND_RUNS}$query$
      USING p_project, segments, p_scopes, coalesce(of_sessions, segments), p_together, p_from, p_at
    LOOP
      EXIT WHEN c.last_at < full_at;
      -- Not without any progress: all runs that reach beyond the position were looked at, and as many as a frequent word
      -- is found in, since looking the runs up can take all the time where the machine is busy.
      runs := runs + 1;
      seen := seen + 1;
      IF c.last_at < p_at AND runs > ${RUNS_MIN} AND clock_timestamp() > until THEN
        rest_at := c.last_at;
        rest_session := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
        rest_seq := 9007199254740991;
        ${ANSWER}
      END IF;
      SELECT h.updated_at INTO touched FROM session_heads h WHERE h.project_id = p_project AND h.session_id = c.session_id;
      CONTINUE WHEN NOT FOUND;
      -- One that has expired is not found, though it may be a minute until it is deleted.
      PERFORM FROM sessions s WHERE s.project_id = p_project AND s.id = c.session_id
        AND (p_configs IS NULL OR s.configs @> p_configs)
        AND (touched + make_interval(secs => s.expires_in_s) <= now()) IS NOT TRUE;
      CONTINUE WHEN NOT FOUND;
      SELECT r.words INTO run_words FROM search_entries r
      WHERE r.project_id = p_project AND r.session_id = c.session_id AND r.seq = c.seq;
      FOR l IN
        SELECT c.seq + x.place - 1 AS seq FROM string_to_table(run_words, E'\\n') WITH ORDINALITY AS x (line, place)
        WHERE CASE WHEN strpos(x.line, p_longest) > 0 THEN x.line::tsvector @@ p_each END
      LOOP
        SELECT e.created_at, e.bytes INTO e FROM entries e
        WHERE e.project_id = p_project AND e.session_id = c.session_id AND e.seq = l.seq AND e.retracted_by IS NULL
          AND e.kind = coalesce(p_kind, e.kind) AND (p_type IS NULL OR e.type = p_type) AND (p_role IS NULL OR e.role = p_role)
          AND e.created_at >= p_from AND (e.created_at, e.session_id, e.seq) < (p_at, at_session, at_seq);
        CONTINUE WHEN NOT FOUND;
        found_at := array_append(found_at, e.created_at);
        found_sessions := array_append(found_sessions, c.session_id);
        found_seqs := array_append(found_seqs, l.seq);
        found_bytes := array_append(found_bytes, e.bytes::bigint);
        full_at := NULL;
      END LOOP;
      IF full_at IS NULL THEN
        SELECT CASE WHEN count(*) = p_limit THEN min(f.at) ELSE '-infinity' END INTO full_at
        FROM (SELECT x.at FROM unnest(found_at) AS x (at) ORDER BY x.at DESC LIMIT p_limit) f;
      END IF;
    END LOOP;
    EXIT WHEN cardinality(found_at) >= p_limit OR begins <= p_from;
    IF begins < p_at AND clock_timestamp() > until THEN
      -- All of these segments were searched: it goes on right before them.
      rest_at := begins;
      ${ANSWER}
    END IF;
    segments_max := CASE WHEN seen < ${SPARSE_RUNS} THEN least(segments_max * 8, ${SPARSE_SEGMENTS_MAX})
      ELSE least(segments_max * 2, ${SEGMENTS_MAX}) END;
  END LOOP;
  ${ANSWER}
END`,
  {
    // The index of words gives bitmaps; all else is looked up by complete keys.
    enable_seqscan: 'off',
    enable_indexscan: 'off',
    enable_indexonlyscan: 'off',
    enable_bitmapscan: 'on',
    // Reading a row's words as a tsvector takes as long as some hundred operators, which its plan does not know.
    cpu_operator_cost: '1',
    jit: 'off',
    // Citus can plan what names project_id more than once only with its value, and says so of a generic plan by its cost.
    plan_cache_mode: 'auto',
  },
)
