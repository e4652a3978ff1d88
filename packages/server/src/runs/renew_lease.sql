-- Answer: the lease as JSON, or `refused`: fenced, with the fence and the owner that there are, or the lease that
-- stalled.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_session uuid,
  p_fence bigint,
  p_ttl_ms int
)
RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
AS $function$
#variable_conflict use_column
DECLARE{run_variables}
BEGIN
  {lock_run}
  {read_lease}
  IF head.fence <> p_fence OR lease.owner IS NULL OR (lease.progress AND ends_at <= at) THEN
    RETURN json_build_object('refused', 'fenced', 'fence', head.fence, 'owner', lease.owner);
  END IF;
  IF NOT lease.progress THEN
    ends_at := at + p_ttl_ms * interval '1 millisecond';
    lease.expires_at := ends_at;
  END IF;
  UPDATE session_runs AS r SET ttl_ms = p_ttl_ms, expires_at = lease.expires_at
  WHERE r.project_id = p_project AND r.session_id = p_session;
  RETURN json_build_object('fence', head.fence, 'owner', lease.owner, 'expires_at', {ends_at_text});
END
$function$
