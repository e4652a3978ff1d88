-- Merges into the meta of a space, unless the result exceeds `p_bytes_max`. Answer: the merged space as JSON, empty if
-- it is too large; null if there is no such space.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_id uuid, p_body jsonb, p_bytes_max int) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  before record;
  made record;
  after jsonb;
  {move_terms_variables}
BEGIN
  SELECT l.id, l.user_id, l.meta, l.created_at INTO before
  FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT {merged_json} INTO after;
  IF octet_length(after::text) > p_bytes_max THEN
    RETURN '';
  END IF;
  {move_terms}
  UPDATE learning_spaces AS l SET meta = after, updated_at = greatest(now(), l.updated_at)
  WHERE l.project_id = p_project AND l.id = p_id
  RETURNING l.* INTO made;
  RETURN {learning_space_json};
END
$function$
