-- Opens a request and appends its event. `p_request`: as it was sent. Answer: how many events were `added`, none if its id
-- is known, and the request on a line of its own; or `refused`: fenced, request_differs, requests_full; null if there is no
-- such session.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_fence bigint, p_id uuid, p_event uuid, p_request jsonb, p_call_sha256 text, p_expires_at text
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
  request record;
  asked jsonb := p_request - '{id,expires_at}'::text[];
BEGIN
  {lock_run}
  SELECT q.* INTO request FROM session_requests q WHERE q.project_id = p_project AND q.id = p_id;
  IF FOUND THEN
    IF request.session_id <> p_session OR request.body <> asked THEN
      RETURN '{"refused":"request_differs"}';
    END IF;
    RETURN concat(E'{"added":0}\n', {request_json});
  END IF;
  {check_fence_or_lease}
  fenced := p_fence IS NOT NULL;
  IF (SELECT count(*) FROM (SELECT FROM session_requests q WHERE q.project_id = p_project AND q.session_id = p_session AND {is_open}
      ORDER BY q.created_at DESC LIMIT {open_max}) q) = {open_max} THEN
    RETURN '{"refused":"requests_full"}';
  END IF;
  event_id := p_event;
  event_type := '{request_type}';
  event_data := asked || jsonb_build_object('request_id', p_id)
    || CASE WHEN p_expires_at IS NULL THEN '{}' ELSE jsonb_build_object('expires_at', p_expires_at) END;
  {append}
  INSERT INTO session_requests AS q (project_id, id, session_id, place, seq, bytes, body, call_sha256, created_at, expires_at)
  VALUES (p_project, p_id, p_session, head.place + 1, head.last_seq, event_bytes, asked, p_call_sha256, at,
    p_expires_at::timestamptz)
  RETURNING q.* INTO request;
  RETURN concat(E'{"added":1}\n', {request_json});
END
$function$
