-- Answer: released, or empty where the lease is somebody else's or nobody's.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_session uuid,
  p_fence bigint
)
RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
AS $function$
#variable_conflict use_column
DECLARE{run_variables}
BEGIN
  {lock_run}
  {read_lease}
  IF head.fence <> p_fence OR lease.owner IS NULL THEN
    RETURN '';
  END IF;
  UPDATE session_runs AS r SET owner = NULL, expires_at = NULL, progress = false, place = head.place + 1
  WHERE r.project_id = p_project AND r.session_id = p_session;
  UPDATE session_heads AS h SET requires_fence = NULL, run_place = head.place + 1
  WHERE h.project_id = p_project AND h.session_id = p_session;
  RETURN 'released';
END
$function$
