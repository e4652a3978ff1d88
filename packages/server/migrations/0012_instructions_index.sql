-- The instructions of a session (system and developer messages), which every context keeps, wherever they stand: found
-- without reading the log. Only they are in the index, so nothing else pays for it.

CREATE INDEX entries_instructions ON entries (project_id, session_id, seq)
  WHERE kind = 'message' AND coalesce(data #>> '{meta,provider_role}', data ->> 'role') IN ('system', 'developer');
