-- Resolves requests, all or none, and appends an event for each, under the id in `p_events`. `p_resolutions`: a JSON array
-- of resolutions as they were sent; the only one is of `p_request`, if that is not null. Answer: `sessions` and how many
-- events were `added`, and on a line of its own the requests, an array of JSON as text; or `refused`, the `index` and what
-- is there: missing, resolved, expired, kind (the decision is none for it), call (another call was asked for), differs
-- (another entry has the event's id). One that was added under its event's id before is a retry. The heads are locked in
-- the order of their ids, as by appends.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_request uuid, p_resolutions jsonb, p_events uuid[]) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
  last int := jsonb_array_length(p_resolutions) - 1;
  writes boolean := last = 0;
  one jsonb;
  request record;
  given jsonb;
  stored bigint;
  p_session uuid;
  sessions uuid[] := '{}';
  found_sessions uuid[] := '{}';
  items text[] := '{}';
  added int := 0;
BEGIN
  -- One by one: for a list of ids the planner may read all requests, or all heads, of the project.
  FOR index IN 0 .. last LOOP
    SELECT q.session_id INTO p_session FROM session_requests q
    WHERE q.project_id = p_project AND q.id = coalesce(p_request, (p_resolutions -> index ->> 'request_id')::uuid);
    sessions := sessions || p_session;
  END LOOP;
  IF last > 0 THEN
    sessions := ARRAY(SELECT DISTINCT x.id FROM unnest(sessions) AS x (id) WHERE x.id IS NOT NULL ORDER BY x.id);
  END IF;
  FOREACH p_session IN ARRAY sessions LOOP
    {lock_head}
    IF FOUND THEN
      found_sessions := found_sessions || p_session;
    END IF;
  END LOOP;
  at := clock_timestamp();
  -- One is checked and stored at once; of several, all are checked first.
  LOOP
    FOR index IN 0 .. last LOOP
      one := p_resolutions -> index;
      event_id := p_events[index + 1];
      SELECT q.* INTO request FROM session_requests q
      WHERE q.project_id = p_project AND q.id = coalesce(p_request, (one ->> 'request_id')::uuid);
      IF last = 0 OR NOT writes THEN
        IF NOT coalesce(request.session_id = ANY (found_sessions), false) THEN
          RETURN json_build_object('refused', 'missing', 'index', index);
        END IF;
        SELECT e.seq INTO stored FROM entries e WHERE e.project_id = p_project AND {by_event_id};
        IF stored IS NOT NULL AND (stored <> coalesce(request.resolved_seq, 0) OR request.decision <> one ->> 'decision'
            OR request.resolved_by IS DISTINCT FROM one ->> 'by' OR request.answer -> 'value' IS DISTINCT FROM one -> 'answer') THEN
          RETURN json_build_object('refused', 'differs', 'index', index);
        ELSIF request.decision IS NOT NULL AND stored IS NULL THEN
          RETURN json_build_object('refused', 'resolved', 'index', index, 'decision', request.decision, 'by', request.resolved_by,
            'at', {resolved_at});
        ELSIF request.decision IS NULL AND request.expires_at <= at THEN
          RETURN json_build_object('refused', 'expired', 'index', index, 'at', {expires_at});
        ELSIF request.decision IS NULL AND (request.body ->> 'kind' = 'question') <> (one ->> 'decision' = 'answer') THEN
          RETURN json_build_object('refused', 'kind', 'index', index, 'kind', request.body ->> 'kind');
        ELSIF request.decision IS NULL AND request.call_sha256 IS DISTINCT FROM one ->> 'call_sha256'
            AND (one ->> 'decision' = 'approve' OR one ->> 'call_sha256' IS NOT NULL) THEN
          RETURN json_build_object('refused', 'call', 'index', index, 'call_sha256', request.call_sha256);
        END IF;
      END IF;
      CONTINUE WHEN NOT writes;
      IF request.decision IS NULL THEN
        added := added + 1;
        IF last > 0 THEN
          p_session := request.session_id;
          {lock_head}
        END IF;
        event_type := '{resolution_type}';
        event_data := (one - '{id,request_id}'::text[]) || jsonb_build_object('request_id', request.id, 'request_seq', request.seq);
        {append}
        given := CASE WHEN one ? 'answer' THEN jsonb_build_object('value', one -> 'answer') END;
        UPDATE session_requests AS q SET place = head.place + 1, decision = one ->> 'decision', answer = given,
          resolved_by = one ->> 'by', resolved_at = at, resolved_seq = head.last_seq, bytes = q.bytes + event_bytes
        WHERE q.project_id = p_project AND q.id = request.id
        RETURNING q.* INTO request;
      END IF;
      items := items || {request_json};
    END LOOP;
    EXIT WHEN writes;
    writes := true;
  END LOOP;
  RETURN concat(json_build_object('sessions', found_sessions, 'added', added), E'\n', to_json(items));
END
$function$
