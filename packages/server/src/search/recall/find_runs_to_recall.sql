-- Finds runs of entries that have some of the words, those with the rarest ones first. A sample says how frequent each
-- is; a rare word is looked up in all segments, a frequent one in as many of the newest as leave p_hits runs in all.
-- After about p_ms, only the rarest words are looked up, and a few more where these find nothing. Answer, as JSON: `complete`, whether all runs that have any of
-- the words are in `runs`; `weights`, how much each word tells; `runs`, [session_id, seq, words, when the first
-- happened, in ms] of p_runs at most.  p_words: by word of the question, what a run must have of it; p_all: all of them.
-- p_scopes: what a run must have all of; p_sessions: ids, of one of which it must be.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_words tsquery[],
  p_all tsquery,
  p_scopes text[],
  p_sessions uuid[],
  p_configs jsonb,
  p_from timestamptz,
  p_to timestamptz,
  p_hits int,
  p_runs int,
  p_ms int
)
RETURNS text
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_indexscan = on
SET enable_indexonlyscan = off
SET enable_bitmapscan = on
SET enable_hashjoin = off
SET enable_mergejoin = off
SET cpu_tuple_cost = 100
-- Or else it reads the primary key of the whole project beside the index of words, to read fewer rows.
SET cpu_index_tuple_cost = 100
SET jit = off
SET plan_cache_mode = auto
AS $function$
#variable_conflict use_column
DECLARE
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
    all_runs := greatest(all_runs / {run_entries}, 1);
    sample := NULL;
  ELSE
    SELECT array_agg(p_project::text || ' ' || s.segment ORDER BY s.segment DESC), greatest(sum(s.entries) / {run_entries}, 1)
    INTO segments, all_runs
    FROM (
      SELECT s.segment, s.entries FROM search_segments s
      WHERE s.project_id = p_project AND s.entries > 0 AND (s.begins_at <= p_to OR s.first_at <= p_to) ORDER BY s.segment DESC LIMIT {segments_max}
    ) s;
    sample := segments[1:{sampled_segments}];
  END IF;
  IF segments IS NULL THEN
    RETURN '{"complete":true,"weights":[],"runs":[]}';
  END IF;
  PERFORM set_config('enable_indexscan', 'off', true);
  IF sample IS NOT NULL THEN
    EXECUTE $query${count_runs}$query$ INTO counted USING p_project, sample, p_scopes, NULL::tsquery;
    sampled_runs := greatest(counted, 1);
    SELECT greatest(sum(s.entries), 1) INTO scale FROM (
      SELECT s.entries FROM search_segments s
      WHERE s.project_id = p_project AND s.entries > 0 AND (s.begins_at <= p_to OR s.first_at <= p_to) ORDER BY s.segment DESC LIMIT {sampled_segments}) s;
    scale := greatest(all_runs * {run_entries} / scale, 1);
    all_runs := greatest(sampled_runs * scale, 1);
  END IF;
  FOR place IN 1..cardinality(p_words) LOOP
    IF sample IS NULL THEN
      counted := 0;
    ELSE
      EXECUTE $query${count_runs}$query$ INTO counted USING p_project, sample, p_scopes, p_words[place];
    END IF;
    counts := counts || counted * scale;
  END LOOP;
  -- Where every word is frequent, the newest runs of each would hide those that have them all.
  IF cardinality(p_words) > 1 AND p_all IS NOT NULL AND (SELECT min(x.n) FROM unnest(counts) AS x (n)) > p_hits THEN
    EXECUTE $query${find_runs}$query$ INTO of_one, of_seqs, counted
      USING p_project, segments[1:{frequent_segments}], p_scopes, p_all, p_from, p_to, p_runs;
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
    IF hits_left > 0 AND (rank <= {always_words} OR cardinality(found_sessions) = 0 AND rank <= {late_words} OR clock_timestamp() < until) THEN
      EXECUTE $query${find_runs}$query$ INTO of_one, of_seqs, counted
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
END
$function$
