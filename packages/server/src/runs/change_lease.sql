-- Without a fence it takes the lease; with one it renews the lease for `p_ttl_ms`, or releases it, if that is null.
-- Answer: the lease as JSON; empty where nothing was to be released; or `refused`: leased, by whom and for how long;
-- fenced, with the fence that there is; released, stalled; null if there is no such session.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_fence bigint, p_ttl_ms int, p_owner text, p_progress boolean, p_requires boolean,
  p_steal boolean
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
BEGIN
  {lock_run}
  {read_lease}
  IF p_fence IS NULL THEN
    IF ends_at > at AND lease.owner <> p_owner AND NOT p_steal THEN
      RETURN json_build_object('refused', 'leased', 'owner', lease.owner, 'expires_at', {ends_at},
        'left_ms', ceil(extract(epoch FROM ends_at - at) * 1000));
    END IF;
    {take_run}
  ELSIF p_ttl_ms IS NULL THEN
    IF head.fence <> p_fence OR lease.owner IS NULL THEN
      RETURN '';
    END IF;
    UPDATE session_runs AS r SET owner = NULL, expires_at = NULL, progress = false, place = head.place + 1
    WHERE r.project_id = p_project AND r.session_id = p_session;
    UPDATE session_heads AS h SET requires_fence = NULL, run_place = head.place + 1
    WHERE h.project_id = p_project AND h.session_id = p_session;
  ELSIF head.fence <> p_fence OR lease.owner IS NULL OR (lease.progress AND ends_at <= at) THEN
    RETURN json_build_object('refused', CASE WHEN head.fence <> p_fence THEN 'fenced' WHEN lease.owner IS NULL THEN 'released' ELSE 'stalled' END,
      'fence', head.fence);
  ELSE
    IF NOT lease.progress THEN
      ends_at := at + p_ttl_ms * interval '1 millisecond';
      lease.expires_at := ends_at;
    END IF;
    UPDATE session_runs AS r SET ttl_ms = p_ttl_ms, expires_at = lease.expires_at
    WHERE r.project_id = p_project AND r.session_id = p_session;
  END IF;
  RETURN json_build_object('fence', head.fence, 'owner', lease.owner, 'expires_at', {ends_at});
END
$function$
