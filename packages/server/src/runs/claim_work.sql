-- Leases sessions with due input and no valid lease, the longest due first. It waits for nobody: a head that somebody
-- holds is skipped, so two claimers take different sessions. Answer: the `sessions`, how many were `skipped`, and if
-- there are none, in how many ms the next one is due (`next_ms`, or null); then, on a line of its own, `items`.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_owner text, p_ttl_ms int, p_max int, p_filter jsonb) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
  candidates refcursor;
  p_session uuid;
  sessions uuid[] := '{}';
  p_progress boolean := false;
  p_requires boolean := false;
  begun_at timestamptz := clock_timestamp();
  items text[] := '{}';
  skipped int := 0;
  inputs text;
  due int;
  shown int;
  next_ms bigint;
  -- Those that may match, where they are few; null: look at all that are due.
  few uuid[];
BEGIN
  IF p_filter IS NOT NULL THEN
    -- Each value of the filter is a term of the list of sessions: see migrations/0004_list_terms.sql.
    SELECT f.ids INTO few FROM (
      SELECT w.term FROM unnest(json_terms('sessions', p_filter, true)) AS w (term) ORDER BY w.term & 7 LIMIT {filter_terms_max}
    ) w CROSS JOIN LATERAL (
      SELECT ARRAY(
        SELECT t.item_id FROM ({arms}) AS a (term) CROSS JOIN LATERAL (
          SELECT t.item_id FROM list_terms t WHERE t.project_id = p_project AND t.term = a.term
          ORDER BY t.created_at, t.item_id LIMIT {few_max} + 1) t
        LIMIT {few_max} + 1) AS ids
    ) f WHERE cardinality(f.ids) <= {few_max} ORDER BY cardinality(f.ids) LIMIT 1;
  END IF;
  -- Fetched one by one: FOR would look for ten, and with a rare filter at all that are due.
  IF few IS NULL THEN
    OPEN candidates FOR
      SELECT o.session_id FROM (
        SELECT r.session_id, greatest(r.wake_at, r.expires_at) AS due_at FROM session_runs r
        WHERE r.project_id = p_project AND r.wake_at IS NOT NULL AND greatest(r.wake_at, r.expires_at) <= begun_at
        ORDER BY greatest(r.wake_at, r.expires_at), r.session_id LIMIT {claim_scan_max}
      ) o
      WHERE p_filter IS NULL OR EXISTS (
        SELECT FROM sessions s WHERE s.project_id = p_project AND s.id = o.session_id AND s.configs @> p_filter OFFSET 0)
      ORDER BY o.due_at, o.session_id;
  ELSE
    OPEN candidates FOR
      SELECT x.id FROM unnest(few) AS x (id) CROSS JOIN LATERAL (
        SELECT r.wake_at, greatest(r.wake_at, r.expires_at) AS due_at FROM session_runs r
        WHERE r.project_id = p_project AND r.session_id = x.id ORDER BY r.session_id LIMIT 1) o
      WHERE o.wake_at IS NOT NULL AND o.due_at <= begun_at AND EXISTS (
        SELECT FROM sessions s WHERE s.project_id = p_project AND s.id = x.id AND s.configs @> p_filter OFFSET 0)
      ORDER BY o.due_at, x.id;
  END IF;
  LOOP
    FETCH candidates INTO p_session;
    EXIT WHEN NOT FOUND;
    {read_head} FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      CONTINUE WHEN NOT EXISTS (SELECT FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session);
      skipped := skipped + 1;
      EXIT WHEN skipped >= 100;
      CONTINUE;
    END IF;
    at := clock_timestamp();
    {read_lease}
    CONTINUE WHEN coalesce(lease.wake_at > at, true);
    IF ends_at > at THEN
      -- Prolonged by an append; one that another claimer has just taken stays as it is.
      UPDATE session_runs AS r SET expires_at = ends_at
      WHERE r.project_id = p_project AND r.session_id = p_session AND r.expires_at < ends_at;
      CONTINUE;
    END IF;
    SELECT count(*), count(*) FILTER (WHERE i.before < {claimed_bytes_max}),
      string_agg({input_json}, ',' ORDER BY i.place) FILTER (WHERE i.before < {claimed_bytes_max})
    INTO due, shown, inputs
    FROM (
      SELECT i.*, sum(i.bytes) OVER (ORDER BY i.place) - i.bytes AS before FROM session_inbox i
      WHERE i.project_id = p_project AND i.session_id = p_session AND (i.not_before <= at OR {due_at_once}) AND {pending}
    ) i;
    IF due = 0 THEN
      {wake}
      CONTINUE;
    END IF;
    {take_run}
    sessions := sessions || p_session;
    items := items || concat('{"session_id":"', p_session, '","fence":', head.fence, ',"owner":', to_json(p_owner), ',"expires_at":"', {ends_at},
      '","inputs":[', inputs, '],"has_more":', CASE WHEN shown < due THEN 'true' ELSE 'false' END, '}');
    EXIT WHEN cardinality(items) >= p_max;
  END LOOP;
  IF cardinality(items) = 0 THEN
    SELECT ceil(extract(epoch FROM greatest(r.wake_at, r.expires_at) - begun_at) * 1000) INTO next_ms FROM session_runs r
    WHERE r.project_id = p_project AND r.wake_at IS NOT NULL AND greatest(r.wake_at, r.expires_at) > begun_at
    ORDER BY greatest(r.wake_at, r.expires_at), r.session_id LIMIT 1;
  END IF;
  RETURN concat(json_build_object('sessions', sessions, 'skipped', skipped, 'next_ms', next_ms), E'\n{"items":[', array_to_string(items, ','), ']}');
END
$function$
