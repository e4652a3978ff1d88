-- Resolves requests, all or none, and appends an event for each. `p_resolutions`: a JSON array of `id`, `event_id`,
-- `decision`, `answer`, `by`, `call_sha256`. Answer: `sessions`, how many were `added`, and `items`, which are JSON as
-- text; or `refused`, the `index` and what is there: missing, resolved, expired, kind (the decision is none for it), call
-- (another call was asked for), differs (another entry has the `event_id`). One that was added under its `event_id` before
-- is a retry. The heads are locked in the order of their ids, as by appends.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_resolutions jsonb) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
  one record;
  request record;
  given jsonb;
  stored bigint;
  p_session uuid;
  sessions uuid[] := '{}';
  items text[] := '{}';
  added int := 0;
BEGIN
  -- One by one: for a list of ids the planner may read all requests, or all heads, of the project.
  FOR p_session IN
    SELECT DISTINCT q.session_id FROM jsonb_array_elements(p_resolutions) AS x (value) CROSS JOIN LATERAL (
      SELECT r.session_id FROM session_requests r WHERE r.project_id = p_project AND r.id = (x.value ->> 'id')::uuid ORDER BY r.id LIMIT 1) q
    ORDER BY q.session_id
  LOOP
    PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR NO KEY UPDATE;
    IF FOUND THEN
      sessions := sessions || p_session;
    END IF;
  END LOOP;
  at := clock_timestamp();
  FOR one IN SELECT x.value, x.nth - 1 AS index, x.value ->> 'decision' AS decision
    FROM jsonb_array_elements(p_resolutions) WITH ORDINALITY x (value, nth) ORDER BY x.nth
  LOOP
    SELECT q.* INTO request FROM session_requests q
    WHERE q.project_id = p_project AND q.id = (one.value ->> 'id')::uuid AND q.session_id = ANY (sessions);
    IF NOT FOUND THEN
      RETURN json_build_object('refused', 'missing', 'index', one.index);
    END IF;
    SELECT e.seq INTO stored FROM entries e WHERE e.project_id = p_project AND {by_event_id};
    IF stored IS NOT NULL AND (stored <> coalesce(request.resolved_seq, 0) OR request.decision <> one.decision
        OR request.resolved_by IS DISTINCT FROM one.value ->> 'by' OR request.answer -> 'value' IS DISTINCT FROM one.value -> 'answer') THEN
      RETURN json_build_object('refused', 'differs', 'index', one.index);
    ELSIF request.decision IS NOT NULL THEN
      CONTINUE WHEN stored IS NOT NULL;
      RETURN json_build_object('refused', 'resolved', 'index', one.index, 'decision', request.decision, 'by', request.resolved_by,
        'at', {resolved_at_text});
    ELSIF request.expires_at <= at THEN
      RETURN json_build_object('refused', 'expired', 'index', one.index, 'at', {expires_at_text});
    ELSIF (request.body ->> 'kind' = 'question') <> (one.decision = 'answer') THEN
      RETURN json_build_object('refused', 'kind', 'index', one.index, 'kind', request.body ->> 'kind');
    ELSIF request.call_sha256 IS DISTINCT FROM one.value ->> 'call_sha256' AND (one.decision = 'approve' OR one.value ->> 'call_sha256' IS NOT NULL) THEN
      RETURN json_build_object('refused', 'call', 'index', one.index, 'call_sha256', request.call_sha256);
    END IF;
  END LOOP;
  FOR one IN SELECT x.value FROM jsonb_array_elements(p_resolutions) WITH ORDINALITY x (value, nth) ORDER BY x.nth LOOP
    SELECT q.* INTO request FROM session_requests q WHERE q.project_id = p_project AND q.id = (one.value ->> 'id')::uuid;
    IF request.decision IS NOT NULL THEN
      items := items || {request_json};
      CONTINUE;
    END IF;
    p_session := request.session_id;
    added := added + 1;
    SELECT h.last_seq, h.updated_at, coalesce(h.run_place, 0) AS place, h.proof IS NOT NULL AS is_chained INTO head
    FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session;
    {append}
    given := CASE WHEN one.value ? 'answer' THEN jsonb_build_object('value', one.value -> 'answer') END;
    UPDATE session_requests AS q SET place = head.place + 1, decision = one.value ->> 'decision', answer = given,
      resolved_by = one.value ->> 'by', resolved_at = at, resolved_seq = head.last_seq, bytes = q.bytes + event_bytes
    WHERE q.project_id = p_project AND q.id = request.id
    RETURNING q.* INTO request;
    UPDATE session_runs AS r SET open_requests = greatest(r.open_requests - 1, 0) WHERE r.project_id = p_project AND r.session_id = p_session;
    items := items || {request_json};
  END LOOP;
  RETURN json_build_object('sessions', sessions, 'added', added, 'items', items);
END
$function$
