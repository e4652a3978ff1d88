-- Finds runs of entries that have some of the words, those with the rarest ones first. A sample says how frequent each
-- is; a rare word is looked up in all segments, a frequent one in as many of the newest as leave p_hits runs in all.
-- Where p_runs were found that tell at least as much as all words that are left, these are only looked up in runs that
-- have one of the words before: no other run can be among the best. After about p_ms, only the rarest words are looked
-- up, and a few more where these find nothing. Answer: JSON.
-- `complete`, whether all runs that have any of the words are in `runs`; `weights`, how much each word tells; `counts`,
-- runs of the sample, and those of each word; `runs`, [session_id, seq, when the first happened, in ms, last_seq] of
-- p_runs at most.
-- p_words: by word of the question, what a run must have of it; p_counts: what an answer of a moment ago had as `counts`,
-- null where it had none. p_scopes: what a run must have all of; p_sessions: ids, of one of which it must be.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_words tsquery[],
  p_counts float8[],
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
  entries bigint[];
  is_most boolean := false;
  all_runs float8;
  scale float8 := 1;
  sampled float8[] := p_counts;
  counts float8[] := '{}';
  counted bigint;
  weights float8[] := '{}';
  by_count int[];
  seen tsquery;
  together tsquery;
  together_to int := 0;
  enough int;
  expected float8;
  expected_all float8;
  among tsquery;
  left_weight float8;
  lowest float8;
  weight float8;
  is_narrowed boolean := false;
  is_together boolean := false;
  widest int := 1;
  of_one uuid[];
  of_seqs bigint[];
  found_sessions uuid[] := '{}';
  found_seqs bigint[] := '{}';
  found_weights float8[] := '{}';
  hits_left int := p_hits;
  wanted int;
  is_whole boolean;
  is_everywhere boolean := false;
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
    SELECT array_agg(p_project::text || ' ' || s.segment ORDER BY s.segment DESC), array_agg(s.entries ORDER BY s.segment DESC),
      greatest(sum(s.entries) / {run_entries}, 1)
    INTO segments, entries, all_runs
    FROM (
      SELECT s.segment, s.entries FROM search_segments s
      WHERE s.project_id = p_project AND s.entries > 0 AND (s.begins_at <= p_to OR s.first_at <= p_to) ORDER BY s.segment DESC LIMIT {segments_max}
    ) s;
    sample := segments[1:{sampled_segments}];
    -- To look for a word among many segments costs more than to look for it everywhere, where that is mostly this project.
    SELECT all_runs * {most_of_table} >= c.reltuples INTO is_most
    FROM pg_class c WHERE c.oid = 'search_entries'::regclass AND c.reltuples > 0;
    is_most := coalesce(is_most, false);
  END IF;
  IF segments IS NULL THEN
    RETURN '{"complete":true,"weights":[],"counts":[],"runs":[]}';
  END IF;
  PERFORM set_config('enable_indexscan', 'off', true);
  IF sample IS NOT NULL THEN
    IF sampled[1] IS NULL THEN
      EXECUTE $query${count_runs}$query$ INTO counted USING p_project, sample, p_scopes, NULL::tsquery;
      sampled[1] := counted;
    END IF;
    scale := greatest(all_runs * {run_entries} / (SELECT sum(e) FROM unnest(entries[1:{sampled_segments}]) AS e), 1);
    all_runs := greatest(greatest(sampled[1], 1) * scale, 1);
  END IF;
  FOR place IN 1..cardinality(p_words) LOOP
    IF sample IS NULL THEN
      sampled[place + 1] := 0;
    ELSIF sampled[place + 1] IS NULL THEN
      EXECUTE $query${count_runs}$query$ INTO counted USING p_project, sample, p_scopes, p_words[place];
      sampled[place + 1] := counted;
    END IF;
    counts := counts || sampled[place + 1] * scale;
    weights := weights || ln(1 + (greatest(all_runs - counts[place], 0) + 0.5) / (counts[place] + 0.5));
  END LOOP;
  SELECT array_agg(x.place ORDER BY x.n, x.place) INTO by_count FROM unnest(counts) WITH ORDINALITY AS x (n, place);
  FOR rank IN 1..cardinality(by_count) LOOP
    place := by_count[rank];
    IF NOT is_narrowed THEN
      SELECT sum(weights[x.place]) INTO left_weight FROM unnest(by_count[rank:]) AS x (place);
      -- The newest runs of each frequent word would hide those that have several. So many of the rarest that a run
      -- which lacks one of them tells less than those that have them.
      IF NOT is_together AND p_configs IS NULL AND counts[place] > p_runs AND rank < cardinality(by_count)
        AND cardinality(by_count) - rank < {together_words} AND clock_timestamp() < until
      THEN
        is_together := true;
        weight := 0;
        -- How many runs have these words, if words that belong to one question are together so many times as often as others.
        expected := all_runs * {more_together};
        FOR other IN rank..cardinality(by_count) LOOP
          weight := weight + weights[by_count[other]];
          together := coalesce(together && p_words[by_count[other]], p_words[by_count[other]]);
          together_to := other;
          expected := expected * counts[by_count[other]] / all_runs;
          EXIT WHEN other > rank AND weight >= left_weight - weights[by_count[other]];
        END LOOP;
        -- All words first: where enough runs have them, no other can tell more.
        among := together;
        expected_all := expected;
        FOR other IN together_to + 1..cardinality(by_count) LOOP
          among := among && p_words[by_count[other]];
          expected_all := expected_all * counts[by_count[other]] / all_runs;
        END LOOP;
        enough := p_runs;
        IF expected_all < enough AND together_to < cardinality(by_count) THEN
          among := NULL;
          enough := greatest(p_hits / 4, p_runs);
        ELSE
          expected := expected_all;
        END IF;
        -- Fewer segments cannot have enough.
        expected := least(expected, counts[place]);
        is_everywhere := is_most AND expected <= p_hits;
        searched := segments[1:CASE WHEN is_everywhere THEN cardinality(segments)
          ELSE least(ceil(enough * cardinality(segments) / expected), {together_segments}) END::int];
        LOOP
          EXECUTE $query${find_runs}$query$ INTO of_one, of_seqs, counted
            USING p_project, CASE WHEN is_everywhere THEN NULL ELSE searched END, p_scopes, coalesce(among, together), p_from, p_to, p_hits;
          EXIT WHEN counted >= enough;
          IF among IS NOT NULL AND together_to < cardinality(by_count)
            AND (counted * {more_segments} < enough OR cardinality(searched) >= least({together_segments}, cardinality(segments)))
          THEN
            -- Among those that have only some of the words, so many may have others as well.
            among := NULL;
            enough := greatest(p_hits / 4, p_runs);
            CONTINUE;
          END IF;
          EXIT WHEN cardinality(searched) >= least({together_segments}, cardinality(segments)) OR clock_timestamp() > until;
          is_everywhere := is_most AND cardinality(searched) > 1 AND counted * cardinality(segments) <= p_hits * cardinality(searched);
          searched := segments[1:CASE WHEN is_everywhere THEN cardinality(segments)
            ELSE cardinality(searched) * least(greatest(2 * enough / greatest(counted, 1), 2), {more_segments}) END::int];
        END LOOP;
        IF among IS NOT NULL THEN
          weight := left_weight;
          together_to := cardinality(by_count);
        END IF;
        is_narrowed := counted >= p_runs;
        -- Below zero: at least so much. If these are not enough, their words are looked up one by one as well.
        IF counted > 0 THEN
          found_sessions := found_sessions || of_one;
          found_seqs := found_seqs || of_seqs;
          found_weights := found_weights || array_fill(CASE WHEN is_narrowed THEN weight ELSE -weight END, ARRAY[counted::int]);
        END IF;
        IF is_narrowed THEN
          widest := greatest(widest, cardinality(searched));
          -- Often so many of these have the others as well that no word needs to be looked up by itself.
          IF together_to + 1 < cardinality(by_count) THEN
            among := together;
            FOR other IN together_to + 1..cardinality(by_count) LOOP
              among := among && p_words[by_count[other]];
            END LOOP;
            EXECUTE $query${find_runs}$query$ INTO of_one, of_seqs, counted
              USING p_project, CASE WHEN is_everywhere THEN NULL ELSE searched END, p_scopes, among, p_from, p_to, p_runs;
            IF counted >= p_runs THEN
              together_to := cardinality(by_count);
              found_sessions := found_sessions || of_one;
              found_seqs := found_seqs || of_seqs;
              found_weights := found_weights || array_fill(-left_weight, ARRAY[counted::int]);
            END IF;
          END IF;
        ELSE
          together := NULL;
        END IF;
      END IF;
      -- Where sessions are looked at after this, others may take the place of those that are left out.
      IF NOT is_narrowed AND p_configs IS NULL AND cardinality(found_sessions) >= p_runs THEN
        SELECT greatest(sum(f.weight) FILTER (WHERE f.weight > 0), -min(f.weight)) INTO lowest
        FROM unnest(found_sessions, found_seqs, found_weights) AS f (session_id, seq, weight)
        GROUP BY f.session_id, f.seq ORDER BY 1 DESC OFFSET p_runs - 1 LIMIT 1;
        is_narrowed := coalesce(lowest >= left_weight, false);
      END IF;
      is_narrowed := is_narrowed OR hits_left < p_hits / 4;
    END IF;
    searched := segments;
    -- Half of what is left where it has more, or a word would hide the next one, which may tell nearly as much.
    wanted := CASE WHEN counts[place] <= hits_left THEN hits_left ELSE greatest(hits_left / 2, p_runs) END;
    IF is_narrowed THEN
      searched := segments[1:widest];
      wanted := p_hits;
    ELSIF sample IS NOT NULL AND counts[place] > wanted THEN
      searched := segments[1:greatest(floor(cardinality(segments) * wanted / counts[place])::int, 1)];
    END IF;
    is_everywhere := is_most AND cardinality(searched) = cardinality(segments);
    is_whole := cardinality(searched) = cardinality(segments) AND NOT is_narrowed;
    counted := 0;
    IF is_narrowed THEN
      among := CASE WHEN together IS NULL OR rank <= together_to THEN seen ELSE coalesce(seen || together, together) END;
    END IF;
    IF is_narrowed AND among IS NULL THEN
      complete := false;
    ELSIF rank <= {always_words} OR cardinality(found_sessions) = 0 AND rank <= {late_words} OR clock_timestamp() < until THEN
      EXECUTE $query${find_runs}$query$ INTO of_one, of_seqs, counted
        USING p_project, CASE WHEN is_everywhere THEN NULL ELSE searched END, p_scopes,
          CASE WHEN is_narrowed THEN among && p_words[place] ELSE p_words[place] END, p_from, p_to, wanted;
    ELSE
      is_whole := false;
    END IF;
    is_whole := is_whole AND counted < wanted;
    complete := complete AND is_whole;
    IF NOT is_narrowed THEN
      counts[place] := CASE WHEN is_whole THEN counted ELSE greatest(counts[place], counted) END;
      weights[place] := ln(1 + (greatest(all_runs - counts[place], 0) + 0.5) / (counts[place] + 0.5));
      IF counted > 0 THEN
        seen := coalesce(seen || p_words[place], p_words[place]);
        widest := greatest(widest, cardinality(searched));
        hits_left := hits_left - counted;
      END IF;
    END IF;
    IF counted > 0 THEN
      found_sessions := found_sessions || of_one;
      found_seqs := found_seqs || of_seqs;
      found_weights := found_weights || array_fill(weights[place], ARRAY[counted::int]);
    END IF;
  END LOOP;
  PERFORM set_config('enable_indexscan', 'on', true);
  RETURN (
    SELECT json_build_object('complete', complete AND p_runs >= (
        SELECT count(*) FROM (SELECT DISTINCT f.session_id, f.seq FROM unnest(found_sessions, found_seqs) AS f (session_id, seq)) f),
      'weights', weights, 'counts', sampled,
      'runs', coalesce(json_agg(json_build_array(r.session_id, r.seq, floor(extract(epoch FROM r.first_at) * 1000), r.last_seq)), '[]'))::text
    FROM (
      SELECT g.session_id, g.seq, w.last_seq, w.first_at
      FROM (
        SELECT f.session_id, f.seq FROM unnest(found_sessions, found_seqs, found_weights) AS f (session_id, seq, weight)
        GROUP BY f.session_id, f.seq
        ORDER BY greatest(sum(f.weight) FILTER (WHERE f.weight > 0), -min(f.weight)) DESC, f.session_id DESC, f.seq DESC
      ) g
      CROSS JOIN LATERAL (
        SELECT c.last_seq, c.first_at FROM search_entries c WHERE c.project_id = p_project AND c.session_id = g.session_id AND c.seq = g.seq OFFSET 0
      ) w
      WHERE p_configs IS NULL OR EXISTS (
        SELECT FROM sessions s WHERE s.project_id = p_project AND s.id = g.session_id AND s.configs @> p_configs OFFSET 0)
      LIMIT p_runs
    ) r);
END
$function$
