-- Includes a written skill in a space. Answer: the record as JSON, after `=` if it was there; or why not: no_space,
-- no_skill, learnt, other_user, full.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_space uuid, p_skill uuid, p_id uuid) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  space_user uuid;
  skill record;
  made record;
BEGIN
  SELECT l.user_id INTO space_user FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN 'no_space';
  END IF;
  SELECT k.user_id, k.source INTO skill FROM skills k WHERE k.project_id = p_project AND k.id = p_skill FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_skill';
  END IF;
  IF skill.source = 'learnt' THEN
    RETURN 'learnt';
  END IF;
  IF space_user IS NOT NULL AND skill.user_id <> space_user THEN
    RETURN 'other_user';
  END IF;
  SELECT i.* INTO made FROM space_skills i WHERE i.project_id = p_project AND i.learning_space_id = p_space AND i.skill_id = p_skill;
  IF FOUND THEN
    RETURN '=' || {space_skill_json};
  END IF;
  IF (SELECT count(*) FROM space_skills i WHERE i.project_id = p_project AND i.learning_space_id = p_space) >= {space_skills_max} THEN
    RETURN 'full';
  END IF;
  INSERT INTO space_skills AS i (project_id, learning_space_id, skill_id, id, created_at)
  VALUES (p_project, p_space, p_skill, p_id, now()) RETURNING i.* INTO made;
  RETURN {space_skill_json};
END
$function$
