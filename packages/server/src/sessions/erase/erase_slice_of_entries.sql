-- Deletes up to `p_entries_max` entries of the remains of a session. Answer: the last remaining seq; null if another run
-- deleted the rest, or it is a copy in progress.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_session uuid, p_entries_max bigint) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  until bigint;
  remaining bigint;
BEGIN
  SELECT x.last_seq INTO until FROM erased_sessions x
  WHERE x.project_id = p_project AND x.session_id = p_session AND {not_leased} FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  remaining := greatest(until - p_entries_max, 0);
  DELETE FROM entries AS e
  WHERE e.project_id = p_project AND e.session_id = p_session AND e.seq > remaining AND e.seq <= until;
  UPDATE erased_sessions AS x SET last_seq = remaining, leased_until = NULL
  WHERE x.project_id = p_project AND x.session_id = p_session;
  RETURN remaining;
END
$function$
