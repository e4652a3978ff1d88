  IF p_user IS NOT NULL THEN
    SELECT u.id INTO owner FROM users u WHERE u.project_id = p_project AND u.identifier = p_user;
    IF owner IS NULL THEN
      INSERT INTO users AS u (project_id, id, identifier, created_at, updated_at)
      VALUES (p_project, p_new_user, p_user, now(), now())
      ON CONFLICT (project_id, identifier) DO NOTHING;
      SELECT u.id INTO owner FROM users u WHERE u.project_id = p_project AND u.identifier = p_user;
      IF owner IS NULL THEN
        RETURN NULL;
      END IF;
    END IF;
  END IF;
