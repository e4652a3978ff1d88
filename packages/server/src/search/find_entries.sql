-- Finds entries by their words, the newest first, from a position on that is part of it if p_seq is null. The words come
-- from an index of runs of entries, in no order, so it goes from segment to segment and through the runs of each, those
-- that end last first, until none is left that has anything newer than what fills the page; and looks at the log whether
-- an entry is still there to be found.  It ends after about p_ms, wherever it is, but not before it has looked at some
-- runs. Answer, as JSON: `hits`, [session_id, seq, created_at, bytes] of p_limit at most; `at`, where fewer are given
-- though there may be more: the position that it came to.  p_together: what a run must have; p_alike and p_unlike: what
-- an entry's line, and a space, must be LIKE, and must not be; p_longest: what must be in it, which is quicker to tell.
-- p_scopes: those that a run must have all of; p_sessions: ids, of one of which it must be. These and the filters may be
-- null, but for p_from and p_to: between these an entry happened, or was stored if that was earlier.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_together tsquery,
  p_alike text[],
  p_unlike text[],
  p_longest text,
  p_scopes text[],
  p_sessions uuid[],
  p_kind text,
  p_type text,
  p_role text,
  p_configs jsonb,
  p_from timestamptz,
  p_at timestamptz,
  p_session uuid,
  p_seq bigint,
  p_limit int,
  p_ms int,
  p_to timestamptz
)
RETURNS text
LANGUAGE plpgsql STABLE
-- The index of words gives bitmaps, and is not to be passed over for a key: while runs are looked for, the function
-- itself switches the other scans off. All else is looked up by complete keys.
SET enable_seqscan = off
SET enable_indexscan = on
SET enable_indexonlyscan = off
SET enable_bitmapscan = on
-- Reading a row's words as a tsvector takes as long as some hundred operators, which its plan does not know. The cost of
-- an operator itself would count for the look-ups in the index as well.
SET cpu_tuple_cost = 100
-- Or else it reads the primary key of the whole project beside the index of words, to read fewer rows.
SET cpu_index_tuple_cost = 100
SET jit = off
-- Its look-ups by key would be planned for each run: by these costs, a plan for any list of seqs seems dear. Each names
-- project_id once, as Citus needs it for such a plan. While runs are looked for, the function itself asks for a new plan.
SET plan_cache_mode = force_generic_plan
AS $function$
#variable_conflict use_column
DECLARE
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
  session_times timestamptz[];
  is_by_session boolean := false;
  sessions_done int := 0;
  sessions_max int := {sessions_at_once};
  scopes text[];
  segments_max int := 1;
  last_segment int := 2147483647;
  begins timestamptz;
  runs int := 0;
  seen int;
  checked_session uuid;
  is_searched boolean;
  touched timestamptz;
  lines text[];
  seqs bigint[];
  c record;
BEGIN
  IF p_sessions IS NOT NULL THEN
    SELECT array_agg('s' || h.session_id ORDER BY h.updated_at DESC), array_agg(h.updated_at ORDER BY h.updated_at DESC),
      sum(h.last_seq) <= {entries_of_sessions_max}
    INTO of_sessions, session_times, is_by_session
    FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions);
    IF of_sessions IS NULL THEN
      {answer}
    END IF;
  END IF;
  LOOP
    scopes := '{}';
    IF is_by_session THEN
      scopes := of_sessions[sessions_done + 1:sessions_done + sessions_max];
      sessions_done := sessions_done + sessions_max;
      sessions_max := 2 * sessions_max;
      -- No entry of the sessions that are left is newer than the head of the first of them.
      begins := coalesce(session_times[sessions_done + 1] + interval '1 microsecond', '-infinity');
    ELSE
      FOR c IN
        SELECT s.segment, s.begins_at FROM search_segments s
        WHERE s.project_id = p_project AND s.segment < last_segment AND s.begins_at <= p_at
          AND (s.begins_at <= p_to OR s.first_at <= p_to)
        ORDER BY s.segment DESC LIMIT segments_max
      LOOP
        scopes := array_append(scopes, p_project::text || ' ' || c.segment::text);
        last_segment := c.segment;
        begins := c.begins_at;
      END LOOP;
    END IF;
    EXIT WHEN scopes = '{}';
    seen := 0;
    PERFORM set_config('enable_indexscan', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true);
    FOR c IN EXECUTE $query${find_runs}$query$
      USING p_project, scopes, CASE WHEN is_by_session THEN NULL ELSE of_sessions END, p_scopes, p_together, p_from, p_at, p_to
    LOOP
      IF seen = 0 THEN
        PERFORM set_config('enable_indexscan', 'on', true), set_config('plan_cache_mode', 'force_generic_plan', true);
      END IF;
      EXIT WHEN c.last_at < full_at;
      -- Not without any progress: all runs that reach beyond the position were looked at, and as many as a frequent word
      -- is found in, since looking the runs up can take all the time where the machine is busy.
      runs := runs + 1;
      seen := seen + 1;
      IF greatest(c.last_at, begins) < p_at AND runs > {runs_min} AND clock_timestamp() > until THEN
        rest_at := greatest(c.last_at, begins);
        rest_session := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
        rest_seq := 9007199254740991;
        {answer}
      END IF;
      SELECT string_to_array(r.words, E'\n') INTO lines FROM search_entries r
      WHERE r.project_id = p_project AND r.session_id = c.session_id AND r.seq = c.seq;
      seqs := '{}';
      FOR place IN 1..coalesce(cardinality(lines), 0) LOOP
        IF strpos(lines[place], p_longest) > 0 AND lines[place] || ' ' LIKE ALL (p_alike)
          AND NOT lines[place] || ' ' LIKE ANY (p_unlike) THEN
          seqs := array_append(seqs, c.seq + place - 1);
        END IF;
      END LOOP;
      CONTINUE WHEN seqs = '{}';
      IF c.session_id IS DISTINCT FROM checked_session THEN
        checked_session := c.session_id;
        SELECT h.updated_at INTO touched FROM session_heads h WHERE h.project_id = p_project AND h.session_id = c.session_id;
        is_searched := FOUND;
        -- One that has expired is not found, though it may be a minute until it is deleted.
        PERFORM FROM sessions s WHERE s.project_id = p_project AND s.id = c.session_id
          AND (p_configs IS NULL OR s.configs @> p_configs)
          AND (touched + make_interval(secs => s.expires_in_s) <= now()) IS NOT TRUE;
        is_searched := is_searched AND FOUND;
      END IF;
      CONTINUE WHEN NOT is_searched;
      SELECT found_at || array_agg(e.created_at), found_sessions || array_agg(e.session_id), found_seqs || array_agg(e.seq),
        found_bytes || array_agg(e.bytes::bigint)
      INTO found_at, found_sessions, found_seqs, found_bytes
      FROM entries e
      WHERE e.project_id = p_project AND e.session_id = c.session_id AND e.seq = ANY (seqs) AND e.retracted_by IS NULL
        AND e.kind = coalesce(p_kind, e.kind) AND (p_type IS NULL OR e.type = p_type) AND (p_role IS NULL OR e.role = p_role)
        AND least(e.occurred_at, e.created_at) BETWEEN p_from AND p_to AND (e.created_at, e.session_id, e.seq) < (p_at, at_session, at_seq);
      IF cardinality(found_at) >= p_limit THEN
        SELECT min(f.at) INTO full_at FROM (SELECT x.at FROM unnest(found_at) AS x (at) ORDER BY x.at DESC LIMIT p_limit) f;
      END IF;
    END LOOP;
    PERFORM set_config('enable_indexscan', 'on', true), set_config('plan_cache_mode', 'force_generic_plan', true);
    EXIT WHEN full_at >= begins OR begins <= p_from;
    IF begins < p_at AND clock_timestamp() > until THEN
      -- All that is no older was searched: it goes on right before.
      rest_at := begins;
      {answer}
    END IF;
    -- So many that as many runs can be expected as a page may need.
    segments_max := least(greatest(least(2 * segments_max, {segments_max}), segments_max * {runs_wanted} / greatest(seen, 4)),
      {sparse_segments_max});
  END LOOP;
  {answer}
END
$function$
