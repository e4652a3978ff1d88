-- Sets the policy of a space, and marks its sessions, so that they are read under it. Answer: null if there is no such
-- space.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_space uuid, p_policy jsonb) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
BEGIN
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO space_policies AS p (project_id, learning_space_id, mode, policy, updated_at)
  VALUES (p_project, p_space, p_policy ->> 'mode', p_policy - 'mode', now())
  ON CONFLICT (project_id, learning_space_id) DO UPDATE SET mode = excluded.mode, policy = excluded.policy, updated_at = excluded.updated_at;
  INSERT INTO change_marks AS c (project_id, consumer, session_id, marked_at, due_at, failures)
  SELECT p_project, '{consumer}', x.session_id, now(), now(), 0
  FROM space_sessions x WHERE x.project_id = p_project AND x.learning_space_id = p_space ORDER BY x.session_id
  ON CONFLICT (project_id, session_id, consumer) DO NOTHING;
  RETURN 'set';
END
$function$
