import { MOVE_TERMS_VARIABLES, moveTerms, type TermedList } from '../../lists/listed.js'
import { mergedJson } from '../../lists/resource_json.js'

export const SESSION_LIST: TermedList = { table: 'sessions', document: 'configs', has_parents: true }

/** Of the following steps of a stored function that has locked the head of the session. */
export const CONFIGS_VARIABLES = `
  before record;
  after jsonb;
  ${MOVE_TERMS_VARIABLES}`

/** Reads into `before` what a change of the configs of a session needs. */
export function readConfigs(session: string): string {
  return `
  SELECT s.id, s.user_id, s.parent_id, s.configs, s.created_at INTO before
  FROM sessions s WHERE s.project_id = p_project AND s.id = ${session};`
}

/** Merges `change` into the configs in `before`, and gives `after`. */
export function mergeConfigs(change: string): string {
  return `
  SELECT ${mergedJson('before.configs', change)} INTO after;`
}

/** Stores `after` as the configs of the session in `before`. */
export const STORE_CONFIGS = `${moveTerms(SESSION_LIST, 'before', 'after')}
  UPDATE sessions AS s SET configs = after WHERE s.project_id = p_project AND s.id = before.id;`
