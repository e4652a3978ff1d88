-- Sets when a session expires, which touches it. Answer: the session as JSON; null if there is no such session.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_session uuid, p_body jsonb) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  expires_in integer := {expires_in};
  made record;
  made_head record;
BEGIN
  UPDATE session_heads AS h SET updated_at = greatest(now(), h.updated_at)
  WHERE h.project_id = p_project AND h.session_id = p_session RETURNING h.* INTO made_head;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  UPDATE sessions AS s SET expires_in_s = expires_in, expiry_due_at = {expiry}
  WHERE s.project_id = p_project AND s.id = p_session RETURNING s.* INTO made;
  {mark_changes};
  RETURN {session_json};
END
$function$
