-- Creates a learning space, its user if new, and its idempotency key. `p_id` is the space's, `p_user` an identifier or
-- null, `p_new_user` an id for a new user, `p_key` may be null. Answer: the space as JSON; null: see
-- FIND_OR_CREATE_OWNER.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_id uuid, p_user text, p_new_user uuid, p_body jsonb, p_key text, p_request_hash text
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  owner uuid;
  made record;
  answer text;
BEGIN
  {find_or_create_owner}
  INSERT INTO learning_spaces AS l (project_id, id, user_id, meta, created_at, updated_at)
  VALUES (p_project, p_id, owner, coalesce(nullif(p_body -> 'meta', 'null'), '{}'), now(), now())
  RETURNING l.* INTO made;
  {insert_terms};
  answer := {learning_space_json};
  {remember_answer}
  RETURN answer;
END
$function$
