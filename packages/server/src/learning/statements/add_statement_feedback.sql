-- What a session says of statements that it used. Answer: how many of them the space has, or why not: no_space,
-- no_session.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_space uuid, p_session uuid, p_statements uuid[], p_helped boolean
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  known uuid[];
BEGIN
  -- The head first, as whoever erases a user with its sessions and spaces does: the other way round, both wait for each other.
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_space';
  END IF;
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_session';
  END IF;
  known := ARRAY(
    SELECT s.id FROM statements s
    WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.id = ANY (p_statements) AND s.state <> 'revoked' ORDER BY s.id);
  INSERT INTO statement_feedback AS f (project_id, learning_space_id, statement_id, session_id, helped, created_at)
  SELECT p_project, p_space, k.id, p_session, p_helped, now() FROM unnest(known) AS k (id)
  ON CONFLICT (project_id, statement_id, session_id) DO UPDATE SET helped = excluded.helped;
  RETURN cardinality(known);
END
$function$
