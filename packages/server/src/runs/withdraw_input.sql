-- Answer: withdrawn, or `refused`: fenced, applied (the log has it), input_missing; null if there is no such session.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_session uuid, p_fence bigint, p_id uuid, p_reason text) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE{run_variables}
  known record;
BEGIN
  {lock_run}
  {check_fence}
  SELECT i.withdrawn_at INTO known FROM session_inbox i WHERE i.project_id = p_project AND i.session_id = p_session AND i.id = p_id;
  IF NOT FOUND THEN
    PERFORM FROM entries e WHERE e.project_id = p_project AND {by_id};
    RETURN json_build_object('refused', CASE WHEN FOUND THEN 'applied' ELSE 'input_missing' END);
  END IF;
  IF known.withdrawn_at IS NULL THEN
    UPDATE session_inbox AS i SET withdrawn_at = at, reason = p_reason, data = '{}', meta = NULL, bytes = 2, place = head.place + 1
    WHERE i.project_id = p_project AND i.session_id = p_session AND i.id = p_id;
    DELETE FROM session_inbox AS i
    WHERE i.project_id = p_project AND i.session_id = p_session AND i.place < head.place - {withdrawn_kept} AND i.withdrawn_at IS NOT NULL;
    UPDATE session_heads AS h SET run_place = head.place + 1, updated_at = greatest(at, head.updated_at)
    WHERE h.project_id = p_project AND h.session_id = p_session;
    {wake}
  END IF;
  RETURN 'withdrawn';
END
$function$
