-- Stores a written skill, whose blobs are there, and its user if new. `p_files`: an array of path, mime, is_text, bytes,
-- sha256. Answer: the skill as JSON; the same after `=` if it was there already; empty if there is another one of that
-- name; null: see FIND_OR_CREATE_OWNER.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_id uuid, p_user text, p_new_user uuid, p_name text, p_description text, p_meta jsonb,
  p_files jsonb
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  owner uuid;
  made record;
BEGIN
  {find_or_create_owner}
  SELECT k.* INTO made FROM skills k
  WHERE k.project_id = p_project AND k.name = p_name AND k.learning_space_id IS NULL AND k.user_id IS NOT DISTINCT FROM owner FOR KEY SHARE;
  IF FOUND THEN
    IF made.meta = p_meta AND (SELECT jsonb_object_agg(f.path, f.sha256) FROM skill_files f WHERE f.project_id = p_project AND f.skill_id = made.id)
      = (SELECT jsonb_object_agg(l ->> 'path', l ->> 'sha256') FROM jsonb_array_elements(p_files) AS l) THEN
      RETURN '=' || {skill_json};
    END IF;
    RETURN '';
  END IF;
  INSERT INTO skills AS k (project_id, id, user_id, name, description, source, meta, created_at, updated_at)
  VALUES (p_project, p_id, owner, p_name, p_description, 'written', p_meta, now(), now()) RETURNING k.* INTO made;
  INSERT INTO skill_files AS f (project_id, skill_id, path, mime, is_text, bytes, sha256)
  SELECT p_project, p_id, l ->> 'path', l ->> 'mime', (l ->> 'is_text')::boolean, (l ->> 'bytes')::bigint, l ->> 'sha256'
  FROM jsonb_array_elements(p_files) AS l;
  INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
  SELECT DISTINCT p_project, p_id, 0, l ->> 'sha256' FROM jsonb_array_elements(p_files) AS l ORDER BY 4;
  RETURN {skill_json};
END
$function$
