import {
  type ListPosition,
  type ListStatement,
  listStatement,
  writtenInSql,
} from '@annals/kits/lists/listed.js'
import { timestamps, timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
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

/** A learnt skill is listed once a person has approved one of its statements. */
function isShown(skill: string): string {
  return `(${skill}.source = 'written' OR EXISTS (SELECT FROM statements s
    WHERE s.project_id = $1 AND s.learning_space_id = ${skill}.learning_space_id AND s.skill_id = ${skill}.id AND s.state = 'active'))`
}

export const CREATE_SKILL = storedFunctionIn('learning/skills/create_skill.sql', {
  find_or_create_owner: FIND_OR_CREATE_OWNER,
  skill_json: skillJson('made', 'p_project'),
})

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
 * $1 project, $2 space, $3 created_at and $4 id to begin after, $5 how many.
 */
export const LIST_SPACE_SKILLS = prepared(
  'list_space_skills',
  `SELECT ${skillJson('k')} AS json, ${timestampText('k.created_at')} AS created_at, k.id FROM skills k
WHERE k.project_id = $1 AND (k.learning_space_id = $2 OR k.id = ANY (ARRAY(
    SELECT i.skill_id FROM space_skills i WHERE i.project_id = $1 AND i.learning_space_id = $2)))
  AND (k.created_at, k.id) > ($3::timestamptz, $4::uuid) AND ${isShown('k')}
ORDER BY k.created_at, k.id LIMIT $5`,
)

export const INCLUDE_SKILL = storedFunctionIn('learning/skills/include_skill_in_space.sql', {
  space_skill_json: spaceSkillJson('made'),
  space_skills_max: SPACE_SKILLS_MAX,
})

function spaceSkillJson(row: string): string {
  return `json_build_object('id', ${row}.id, 'learning_space_id', ${row}.learning_space_id, 'skill_id', ${row}.skill_id,
    'created_at', ${timestampText(`${row}.created_at`)})::text`
}

export const EXCLUDE_SKILL = prepared(
  'exclude_skill',
  'DELETE FROM space_skills AS i WHERE i.project_id = $1 AND i.learning_space_id = $2 AND i.skill_id = $3',
)
