import { type ListPosition, type ListStatement, listStatement, writtenInSql } from '../../lists/listed.js'
import { timestamps, timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'
import { storedFunction } from '../../postgres/stored_function.js'
import { FIND_OR_CREATE_OWNER } from '../../users/user_queries.js'

/** Written skills that a space may have. */
export const SPACE_SKILLS_MAX = 100

function membersOf(skill: string): string {
  return `'id', ${skill}.id, 'user_id', ${skill}.user_id, 'learning_space_id', ${skill}.learning_space_id, 'name', ${skill}.name,
    'description', ${skill}.description, 'source', ${skill}.source, 'meta', ${skill}.meta, ${timestamps(skill)}`
}

/** A Skill with its files. SKILL.md of a learnt one is made from its statements when it is read. */
function skillJson(skill: string, project = '$1'): string {
  return `json_build_object(${membersOf(skill)}, 'disk_id', ${skill}.id, 'file_index', CASE
    WHEN ${skill}.source = 'learnt' THEN json_build_array(json_build_object('path', 'SKILL.md', 'mime', 'text/markdown', 'bytes', NULL, 'sha256', NULL))
    ELSE (SELECT coalesce(json_agg(json_build_object('path', f.path, 'mime', f.mime, 'bytes', f.bytes, 'sha256', f.sha256) ORDER BY f.path COLLATE "C"), '[]')
      FROM skill_files f WHERE f.project_id = ${project} AND f.skill_id = ${skill}.id) END)::text`
}

/** A learnt skill is shown once somebody has approved something in it. */
function isShown(skill: string): string {
  return `(${skill}.source = 'written' OR EXISTS (SELECT FROM statements s
    WHERE s.project_id = $1 AND s.learning_space_id = ${skill}.learning_space_id AND s.skill_id = ${skill}.id AND s.state = 'active'))`
}

/**
 * Stores a written skill, whose blobs are there, and its user if new. `p_files`: an array of path, mime, is_text, bytes,
 * sha256. Answer: the skill as JSON; the same behind `=` if it was there already; empty if there is another one of that
 * name; null: see FIND_OR_CREATE_OWNER.
 */
export const CREATE_SKILL = storedFunction(
  'create_skill',
  `p_project uuid, p_id uuid, p_user text, p_new_user uuid, p_name text, p_description text,
  p_meta jsonb, p_files jsonb`,
  `DECLARE
  owner uuid;
  made record;
BEGIN${FIND_OR_CREATE_OWNER}
  SELECT k.* INTO made FROM skills k
  WHERE k.project_id = p_project AND k.name = p_name AND k.learning_space_id IS NULL AND k.user_id IS NOT DISTINCT FROM owner FOR KEY SHARE;
  IF FOUND THEN
    IF made.meta = p_meta AND (SELECT jsonb_object_agg(f.path, f.sha256) FROM skill_files f WHERE f.project_id = p_project AND f.skill_id = made.id)
      = (SELECT jsonb_object_agg(l ->> 'path', l ->> 'sha256') FROM jsonb_array_elements(p_files) AS l) THEN
      RETURN '=' || ${skillJson('made', 'p_project')};
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
  RETURN ${skillJson('made', 'p_project')};
END`,
)

export const READ_SKILL = prepared(
  'read_skill',
  `SELECT ${skillJson('k')} AS json, k.name, k.source, ${timestampText('k.created_at')} AS created_at FROM skills k WHERE k.project_id = $1 AND k.id = $2`,
)

export const READ_SKILL_FILES = prepared(
  'read_skill_files',
  `SELECT f.path, f.mime, f.is_text, f.bytes, f.sha256 FROM skill_files f
WHERE f.project_id = $1 AND f.skill_id = $2 AND ($3::text IS NULL OR f.path = $3) ORDER BY f.path COLLATE "C"`,
)

const LISTING = writtenInSql(`json_build_object(${membersOf('t')})::text`)

export function listSkills(
  project_id: string,
  user: string | undefined,
  position: ListPosition,
): ListStatement {
  const of_user = ' AND t.user_id = (SELECT u.id FROM users u WHERE u.project_id = $1 AND u.identifier = $5)'
  const parts = {
    name: user === undefined ? 'list_skills' : 'list_skills_of_user',
    table: 'skills',
    condition: `${isShown('t')}${user === undefined ? '' : of_user}`,
    listing: LISTING,
  }
  return listStatement(parts, project_id, position, ...(user === undefined ? [] : [user]))
}

/**
 * The skills of a space: those that it has learnt, and those that were included. Rows: json, created_at, id. Parameters:
 * $1 project, $2 space, $3 created_at and $4 id to begin behind, $5 how many.
 */
export const LIST_SPACE_SKILLS = prepared(
  'list_space_skills',
  `SELECT ${skillJson('k')} AS json, ${timestampText('k.created_at')} AS created_at, k.id FROM skills k
WHERE k.project_id = $1 AND (k.learning_space_id = $2 OR k.id = ANY (ARRAY(
    SELECT i.skill_id FROM space_skills i WHERE i.project_id = $1 AND i.learning_space_id = $2)))
  AND (k.created_at, k.id) > ($3::timestamptz, $4::uuid) AND ${isShown('k')}
ORDER BY k.created_at, k.id LIMIT $5`,
)

/**
 * Includes a written skill in a space. Answer: the record as JSON, behind `=` if it was there; or why not: no_space,
 * no_skill, learnt, other_user, full.
 */
export const INCLUDE_SKILL = storedFunction(
  'include_skill_in_space',
  'p_project uuid, p_space uuid, p_skill uuid, p_id uuid',
  `DECLARE
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
    RETURN '=' || ${spaceSkillJson('made')};
  END IF;
  IF (SELECT count(*) FROM space_skills i WHERE i.project_id = p_project AND i.learning_space_id = p_space) >= ${SPACE_SKILLS_MAX} THEN
    RETURN 'full';
  END IF;
  INSERT INTO space_skills AS i (project_id, learning_space_id, skill_id, id, created_at)
  VALUES (p_project, p_space, p_skill, p_id, now()) RETURNING i.* INTO made;
  RETURN ${spaceSkillJson('made')};
END`,
)

function spaceSkillJson(row: string): string {
  return `json_build_object('id', ${row}.id, 'learning_space_id', ${row}.learning_space_id, 'skill_id', ${row}.skill_id,
    'created_at', ${timestampText(`${row}.created_at`)})::text`
}

export const EXCLUDE_SKILL = prepared(
  'exclude_skill',
  'DELETE FROM space_skills AS i WHERE i.project_id = $1 AND i.learning_space_id = $2 AND i.skill_id = $3',
)
