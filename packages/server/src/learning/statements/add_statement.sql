-- A person's own statement: active and pinned. The same words again are the same statement. Answer: its id; null if
-- there is no such space; empty if the space is full.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_space uuid, p_id uuid, p_skill_id uuid, p_skill text, p_description text, p_kind text, p_text text
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  skill uuid;
  known uuid;
  digest text := encode(sha256(convert_to(concat_ws(E'\n', 'person', p_skill, p_kind, p_text), 'UTF8')), 'hex');
BEGIN
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT s.id INTO known FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = digest;
  IF FOUND THEN
    RETURN known;
  END IF;
  IF (SELECT count(*) FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = p_space) >= {statements_max} THEN
    RETURN '';
  END IF;
  {find_or_create_skill}
  INSERT INTO statements AS s (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, supports, contradicts, created_at, updated_at)
  VALUES (p_project, p_space, p_id, skill, digest, p_kind, 'active', 'person', true, p_text, 0, 0, now(), now());
  RETURN p_id;
END
$function$
