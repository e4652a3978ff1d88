-- Replaces the configs of a session, or merges into them, unless the result exceeds `p_bytes_max`, if that is not null.
-- The head is locked, so that no append goes on meanwhile. Answer: the new configs, empty if they are too large; null if
-- there is no such session.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_fence bigint, p_body jsonb, p_bytes_max int
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  head record;
  before record;
  after jsonb;
  {terms_variables}
BEGIN
  SELECT coalesce(h.fence, 0) AS fence, coalesce(h.requires_fence, false) AS requires_fence INTO head
  FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;{check_fence}
  SELECT s.id, s.user_id, s.parent_id, s.configs, s.created_at INTO before
  FROM sessions s WHERE s.project_id = p_project AND s.id = p_session;
  SELECT {changed} INTO after;
  IF octet_length(after::text) > p_bytes_max THEN
    RETURN '';
  END IF;
  {move_terms}
  UPDATE sessions AS s SET configs = after WHERE s.project_id = p_project AND s.id = p_session;
  UPDATE session_heads AS h SET updated_at = greatest(now(), h.updated_at)
  WHERE h.project_id = p_project AND h.session_id = p_session;{mark_changes};
  RETURN after;
END
$function$
