-- Gives a session to a space, and marks it, so that its log is read from the beginning. What failed is tried again, and
-- a session that is known has its turn now if `p_now` says so, or right after the one that is under way. The mark is taken from whoever is at work on it without
-- knowing of the space. Answer: the record as JSON, or why not: no_space, no_session, other_user, known.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_space uuid, p_session uuid, p_id uuid, p_now boolean) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  space_user uuid;
  session_user_id uuid;
  made record;
BEGIN
  -- The head first, as whoever erases a user with its sessions and spaces does: the other way round, both wait for each other.
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  SELECT l.user_id INTO space_user FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_space';
  END IF;
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_session';
  END IF;
  SELECT s.user_id INTO session_user_id FROM sessions s WHERE s.project_id = p_project AND s.id = p_session;
  IF space_user IS NOT NULL AND session_user_id IS DISTINCT FROM space_user THEN
    RETURN 'other_user';
  END IF;
  INSERT INTO space_sessions AS x (project_id, learning_space_id, session_id, id, status, asked, created_at, updated_at)
  VALUES (p_project, p_space, p_session, p_id, 'pending', p_now, now(), now())
  ON CONFLICT (project_id, session_id, learning_space_id) DO NOTHING RETURNING x.* INTO made;
  IF NOT FOUND THEN
    UPDATE space_sessions AS x SET error = NULL, attempts = 0, asked = p_now, updated_at = greatest(now(), x.updated_at),
      status = CASE WHEN x.status IN ('distilling', 'skill_writing') THEN x.status ELSE 'pending' END,
      due_at = CASE WHEN x.status IN ('distilling', 'skill_writing') THEN x.due_at END
    WHERE x.project_id = p_project AND x.session_id = p_session AND x.learning_space_id = p_space
      AND (x.status = 'failed' OR p_now)
    RETURNING x.* INTO made;
    IF NOT FOUND THEN
      RETURN 'known';
    END IF;
  END IF;
  INSERT INTO change_marks AS c (project_id, consumer, session_id, marked_at, due_at, failures)
  VALUES (p_project, '{consumer}', p_session, now(), now(), 0)
  ON CONFLICT (project_id, session_id, consumer) DO UPDATE SET due_at = excluded.due_at, lease = NULL;
  RETURN {answer};
END
$function$
