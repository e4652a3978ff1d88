import {
  type ListPosition,
  type ListStatement,
  listStatement,
  writtenInSql,
} from '@annals/kits/lists/listed.js'
import { timestamps, timestampText } from '@annals/kits/lists/resource_json.js'
import type { Parameter } from '@annals/kits/postgres/database.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'

/** Citations that a statement is shown with. */
const CITES_SHOWN_MAX = 100
/** Most statements of a space: nobody would read more. Further findings of rules and models are dropped. */
export const STATEMENTS_MAX = 2_000
/** Versions of its skills that a space keeps. */
const VERSIONS_MAX = 200

function citesJson(statement: string, cites_max: number): string {
  return `(SELECT coalesce(json_agg(json_build_object('session_id', c.session_id, 'seq', c.seq, 'quote', c.quote, 'polarity', c.polarity)
    ORDER BY c.session_id, c.seq), '[]')
  FROM (SELECT o.* FROM statement_cites o WHERE o.project_id = $1 AND o.statement_id = ${statement}.id
    ORDER BY o.session_id, o.seq LIMIT ${cites_max}) c)`
}

function statementJson(statement: string): string {
  const feedback = (helped: string) =>
    `(SELECT count(*) FROM statement_feedback f WHERE f.project_id = $1 AND f.statement_id = ${statement}.id${helped})`
  return `json_build_object('id', ${statement}.id, 'learning_space_id', ${statement}.learning_space_id,
    'skill', (SELECT k.name FROM skills k WHERE k.project_id = $1 AND k.id = ${statement}.skill_id),
    'kind', ${statement}.statement_kind, 'state', ${statement}.state, 'author', ${statement}.author, 'pinned', ${statement}.pinned,
    'text', ${statement}.text, 'supports', ${statement}.supports, 'contradicts', ${statement}.contradicts,
    'used', ${feedback('')}, 'helped', ${feedback(' AND f.helped')}, 'harmed', ${feedback(' AND NOT f.helped')},
    'cites', ${citesJson(statement, CITES_SHOWN_MAX)}, ${timestamps(statement)})::text`
}

export interface StatementFilter {
  project_id: string
  learning_space_id: string
  state?: string | undefined
  kind?: string | undefined
  skill?: string | undefined
}

const LISTING = writtenInSql(statementJson('t'))

export function listStatements(filter: StatementFilter, position: ListPosition): ListStatement {
  const { project_id, learning_space_id, state, kind, skill } = filter
  const more: Parameter[] = [learning_space_id, state ?? null, kind ?? null, skill ?? null]
  const parts = {
    name: 'list_statements',
    table: 'statements',
    condition: `t.learning_space_id = $5 AND ($6::text IS NULL OR t.state = $6) AND ($7::text IS NULL OR t.statement_kind = $7)
    AND ($8::text IS NULL OR t.skill_id = (SELECT k.id FROM skills k WHERE k.project_id = $1 AND k.learning_space_id = $5 AND k.name = $8))`,
    listing: LISTING,
  }
  return listStatement(parts, project_id, position, ...more)
}

export const READ_STATEMENT = prepared(
  'read_statement',
  `SELECT ${statementJson('s')} AS json FROM statements s WHERE s.project_id = $1 AND s.id = $2`,
)

/** Steps of a stored function that set `skill` to the id of the space's skill of this name, which is made under `new_id` if new. */
export function findOrCreateSkill(name: string, description: string, new_id: string): string {
  return `
  SELECT k.id INTO skill FROM skills k WHERE k.project_id = p_project AND k.learning_space_id = p_space AND k.name = ${name};
  IF skill IS NULL THEN
    INSERT INTO skills AS k (project_id, id, user_id, learning_space_id, name, description, source, created_at, updated_at)
    SELECT p_project, ${new_id}, l.user_id, p_space, ${name}, ${description}, 'learnt', now(), now()
    FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space
    ON CONFLICT (project_id, learning_space_id, name) WHERE learning_space_id IS NOT NULL DO NOTHING;
    SELECT k.id INTO skill FROM skills k WHERE k.project_id = p_project AND k.learning_space_id = p_space AND k.name = ${name};
  END IF;`
}

const sessionsText = (polarity: string) =>
  `(SELECT count(DISTINCT c.session_id) FROM statement_cites c WHERE c.project_id = p_project AND c.statement_id = s.id AND c.polarity = '${polarity}')`

/** Step of a stored function that counts anew the sessions that support and contradict some statements `s`. */
export function recountText(which: string): string {
  return `
  UPDATE statements AS s SET supports = ${sessionsText('+')}, contradicts = ${sessionsText('-')}, updated_at = greatest(now(), s.updated_at)
  WHERE s.project_id = p_project AND ${which};`
}

export const ADD_STATEMENT = storedFunctionIn('learning/statements/add_statement.sql', {
  statements_max: STATEMENTS_MAX,
  find_or_create_skill: findOrCreateSkill('p_skill', 'p_description', 'p_skill_id'),
})

/**
 * Steps of a person's change of a statement, in one transaction. Parameters of each: $1 project. Whoever keeps a version
 * of a skill holds the space's row, as does whoever takes words out of all versions: none is made of what is going.
 */
export const CHANGE_STATEMENT = {
  /** $2 statement. */
  hold_space: prepared(
    'hold_space_of_statement',
    `SELECT l.id FROM learning_spaces l WHERE l.project_id = $1
  AND l.id = (SELECT s.learning_space_id FROM statements s WHERE s.project_id = $1 AND s.id = $2) FOR NO KEY UPDATE`,
  ),
  /** $2 statement. Row: learning_space_id, skill_id, state. */
  lock: prepared(
    'lock_statement',
    'SELECT s.learning_space_id, s.skill_id, s.state FROM statements s WHERE s.project_id = $1 AND s.id = $2 FOR UPDATE',
  ),
  /** $2 statement, $3 state, $4 text, $5 kind: each null where it stays. What a person wrote may then be added again, and is nobody else's words. */
  update: prepared(
    'update_statement',
    `UPDATE statements AS s SET state = coalesce($3::text, s.state), text = coalesce($4::text, s.text),
  statement_kind = coalesce($5::text, s.statement_kind), pinned = true,
  origins = CASE WHEN $4::text IS NULL THEN s.origins END,
  rule_key = CASE WHEN s.author = 'person' AND ($3::text = 'retired' OR $4::text IS NOT NULL OR $5::text IS NOT NULL) THEN NULL ELSE s.rule_key END, updated_at = greatest(now(), s.updated_at)
WHERE s.project_id = $1 AND s.id = $2`,
  ),
  /** The statements that SKILL.md shows. $2 skill. Rows: id, kind, text, cites. */
  active: prepared(
    'read_active_statements_of_skill',
    `SELECT s.id, s.statement_kind AS kind, s.text, ${citesJson('s', 5)} AS cites FROM statements s
WHERE s.project_id = $1 AND s.learning_space_id = (SELECT k.learning_space_id FROM skills k WHERE k.project_id = $1 AND k.id = $2)
  AND s.skill_id = $2 AND s.state = 'active' ORDER BY s.supports DESC, s.id`,
  ),
  skill: prepared(
    'read_skill_head',
    'SELECT k.name, k.description, k.source FROM skills k WHERE k.project_id = $1 AND k.id = $2',
  ),
  /** $2 space, $3 version, $4 skill, $5 author, $6 reason, $7 statements, $8 text. */
  add_version: prepared(
    'add_skill_version',
    `INSERT INTO skill_versions AS v (project_id, learning_space_id, id, skill_id, author, reason, statements, text, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now())`,
  ),
  /** $2 space. */
  drop_old_versions: prepared(
    'drop_old_skill_versions',
    `DELETE FROM skill_versions AS v WHERE v.project_id = $1 AND v.id = ANY (ARRAY(
  SELECT o.id FROM skill_versions o WHERE o.project_id = $1 AND o.learning_space_id = $2
  ORDER BY o.created_at DESC, o.id DESC OFFSET ${VERSIONS_MAX}))`,
  ),
} as const

/** Active statements of a space, those with most support first. Parameters: $1 project, $2 space, $3 how many. */
export const READ_ACTIVE_STATEMENTS = prepared(
  'read_active_statements',
  `SELECT s.id, s.statement_kind AS kind, s.text, s.supports, k.name AS skill
FROM statements s JOIN skills k ON k.project_id = $1 AND k.id = s.skill_id
WHERE s.project_id = $1 AND s.learning_space_id = $2 AND s.state = 'active' ORDER BY s.supports DESC, s.id LIMIT $3`,
)

export const ADD_FEEDBACK = storedFunctionIn('learning/statements/add_statement_feedback.sql')

/** Versions of a space's skills, newest first. Parameters: $1 project, $2 space, $3 created_at and $4 id to begin after, $5 how many. */
export const LIST_VERSIONS = prepared(
  'list_skill_versions',
  `SELECT json_build_object('id', v.id, 'skill', (SELECT k.name FROM skills k WHERE k.project_id = $1 AND k.id = v.skill_id),
    'author', v.author, 'reason', v.reason, 'statement_ids', ARRAY(SELECT jsonb_object_keys(v.statements)), 'text', v.text,
    'created_at', ${timestampText('v.created_at')})::text AS json,
  ${timestampText('v.created_at')} AS created_at, v.id
FROM skill_versions v
WHERE v.project_id = $1 AND v.learning_space_id = $2 AND (v.created_at, v.id) < ($3::timestamptz, $4::uuid)
ORDER BY v.created_at DESC, v.id DESC LIMIT $5`,
)

export const ERASE_CITES = storedFunctionIn('learning/statements/erase_statement_cites.sql', {
  recount: recountText('s.id = ANY (touched)'),
})
