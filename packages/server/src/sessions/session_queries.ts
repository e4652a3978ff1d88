import { markChanges } from '@annals/kits/changes/mark_changes.js'
import type { FilteredList, ListFilter } from '@annals/kits/lists/listed.js'
import {
  BEFORE_ALL,
  directionOf,
  idText,
  insertTerms,
  LIMIT_AT,
  type ListPosition,
  type ListStatement,
  listParameters,
  MOVE_TERMS_VARIABLES,
  moveTerms,
  PAGE_ROWS_MAX,
  PLACE,
} from '@annals/kits/lists/listed.js'
import { mergedJson, sessionJson } from '@annals/kits/lists/resource_json.js'
import { aggregated } from '@annals/kits/postgres/column_aggregates.js'
import { composedOnce, ofProject, prepared } from '@annals/kits/postgres/statement.js'
import {
  type StoredFunction,
  sqlFile,
  storedFunction,
  storedFunctionIn,
} from '@annals/kits/postgres/stored_function.js'
import { rememberAnswer, SESSION_LIST } from '../log/append/append_queries.js'
import { checkFenceText, runJson } from '../runs/run_queries.js'
import { FIND_OR_CREATE_OWNER } from '../users/user_queries.js'
import { expiresInText, expiryText } from './expiry_queries.js'

/**
 * A step of a stored function that has just inserted a session: its id must not be that of a deleted session whose log
 * is still being deleted, or of a long copy in progress.
 */
export function refuseReservedId(id: string): string {
  return `
  PERFORM FROM erased_sessions x WHERE x.project_id = p_project AND x.session_id = ${id};
  IF FOUND THEN
    RAISE EXCEPTION 'The id is reserved.' USING ERRCODE = 'unique_violation';
  END IF;`
}

/**
 * Makes sure that the new session's parent stays: who deletes that waits for this transaction, and then finds the child.
 * First the owner is locked, as by an erasure of the user, which locks the user and then sessions.
 */
const HOLD_PARENT = `
  IF parent IS NOT NULL THEN
    PERFORM FROM users u WHERE u.project_id = p_project AND u.id = owner FOR KEY SHARE;
    IF owner IS NOT NULL AND NOT FOUND THEN
      RETURN NULL;
    END IF;
    PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = parent FOR KEY SHARE;
    IF NOT FOUND THEN
      RETURN '';
    END IF;
  END IF;`

export const CREATE_SESSION = storedFunctionIn('sessions/create_session.sql', {
  expires_in: expiresInText('p_body'),
  find_or_create_owner: FIND_OR_CREATE_OWNER,
  hold_parent: HOLD_PARENT,
  expiry: expiryText('now()', 'expires_in'),
  refuse_reserved_id: refuseReservedId('p_id'),
  insert_terms: insertTerms(
    SESSION_LIST,
    'p_project',
    '(SELECT made.id, made.user_id, made.parent_id, made.configs, made.created_at)',
  ),
  mark_changes: markChanges('p_project', '(SELECT p_id AS session_id)', { isNew: true }),
  session_json: sessionJson('made', 'made_head'),
  remember_answer: rememberAnswer('p_id'),
})

/** Row: json, and the run as `run`. */
export const READ_SESSION = ofProject(
  'read_session',
  `
SELECT ${sessionJson('s', 'h')} AS json, ${runJson('s.id')} AS run
FROM {sessions} s JOIN {session_heads} h ON h.project_id = $1 AND h.session_id = s.id
WHERE s.project_id = $1 AND s.id = $2`,
  'one row',
)

/**
 * A session, and whether it agrees with a request that has its id as use_uuid: `agrees` is true or false. Parameters:
 * $1 project, $2 session, $3 user identifier or null (not sent), $4 the body as JSON.
 */
export const COMPARE_SESSION = prepared(
  'compare_session',
  `
SELECT ${sessionJson('s', 'h')} AS json,
  ($3::text IS NULL OR u.identifier IS NOT DISTINCT FROM $3::text)
  AND ($4::jsonb ->> 'parent' IS NULL OR ($4::jsonb ->> 'parent')::uuid IS NOT DISTINCT FROM s.parent_id)
  AND ($4::jsonb ->> 'expires_in_s' IS NULL OR ${expiresInText('$4::jsonb')} IS NOT DISTINCT FROM s.expires_in_s)
  AND coalesce(nullif($4::jsonb -> 'configs', 'null') = s.configs, true)
  AND coalesce(($4::jsonb ->> 'disable_task_tracking')::boolean = s.disable_task_tracking, true) AS agrees
FROM sessions s
JOIN session_heads h ON h.project_id = $1 AND h.session_id = s.id
LEFT JOIN users u ON u.project_id = $1 AND u.id = s.user_id
WHERE s.project_id = $1 AND s.id = $2`,
)

export const REPLACE_CONFIGS = changeConfigs('replace_configs', "p_body -> 'configs'")
export const MERGE_CONFIGS = changeConfigs(
  'merge_configs',
  mergedJson('before.configs', "(p_body -> 'configs')"),
)

function changeConfigs(name: string, changed: string): StoredFunction {
  return storedFunction(name, sqlFile('sessions/change_configs.sql'), {
    changed,
    check_fence: checkFenceText(true),
    terms_variables: MOVE_TERMS_VARIABLES,
    move_terms: moveTerms(SESSION_LIST, 'before', 'after'),
    mark_changes: markChanges('p_project', '(SELECT p_session AS session_id)'),
  })
}

/** Rare fields: whether task tracking is disabled, and an object of the fields that are not null. */
const RARE = `CASE WHEN t.disable_task_tracking OR t.expires_in_s IS NOT NULL OR t.parent_id IS NOT NULL OR t.forked_from IS NOT NULL
    THEN concat(t.disable_task_tracking, json_strip_nulls(json_build_object('expires_in_s', t.expires_in_s,
      'parent_id', t.parent_id, 'forked_from', t.forked_from, 'forked_at_seq', t.forked_at_seq))) END`

export const SESSIONS: FilteredList = {
  list: SESSION_LIST,
  listing: {
    columns: {
      ...PLACE,
      user_id: { sql: 't.user_id', as: 'optional' },
      configs: { sql: 't.configs', as: 'token', is_bounded: true },
      updated_at: {
        sql: '(SELECT h.updated_at FROM {session_heads} h WHERE h.project_id = $1 AND h.session_id = t.id)',
        as: 'time',
      },
      rare: { sql: RARE, as: 'optional' },
    },
    json: ({ id, user_id, configs, created_at, updated_at, rare }, at, project_id) => {
      const fields = rare![at] ?? 'f{}'
      const times = `"created_at":"${created_at![at]}","updated_at":"${updated_at![at]}"`
      return `{"id":"${id![at]}","project_id":"${project_id}","user_id":${idText(user_id![at])},"configs":${configs![at]},"disable_task_tracking":${fields[0] === 't'},${times}${fields === 'f{}' || fields === 't{}' ? '' : ','}${fields.slice(2)}`
    },
  },
}

export interface PrefixFilter {
  prefix: string
  session_id?: string | undefined
}

/** Further filters in the order of ids, which only tokens of single sessions and users have. */
const NARROWED = ` AND ($6::text IS NULL OR t.user_id = (SELECT u.id FROM {users} u WHERE u.project_id = $1 AND u.identifier = $6))
      AND ($7::uuid IS NULL OR t.parent_id = $7) AND (NOT $8::boolean OR t.parent_id IS NULL)
      AND ($9::uuid IS NULL OR t.id = $9) AND t.configs @> $10::jsonb`

/** A page of the sessions whose ids begin with a text, in the order of their ids: a range of the primary key. */
export function listSessionsByPrefix(
  { prefix, session_id }: PrefixFilter,
  { project_id, user, parent, document = '{}' }: ListFilter,
  position: ListPosition,
): ListStatement {
  const { name, order, behind } = directionOf(position)
  const [first, last] = [BEFORE_ALL[name], BEFORE_ALL[name === 'asc' ? 'desc' : 'asc']].map((end) => ({
    ...end,
    id: prefix + end.id.slice(prefix.length),
  }))
  const { listing } = SESSIONS
  const isNarrowed = session_id !== undefined || user !== undefined || parent !== undefined
  const statement = composedOnce(
    `list_sessions_by_prefix_${name}${isNarrowed ? '_narrowed' : ''}`,
    () => `
SELECT ${aggregated(listing.columns)}
FROM (
  SELECT t.* FROM (
    SELECT t.* FROM {sessions} t
    WHERE t.project_id = $1 AND (t.id, t.created_at) ${behind} ($3::uuid, $2::timestamptz)
      AND t.id ${name === 'asc' ? '<=' : '>='} $5::uuid${isNarrowed ? NARROWED : ''}
    ORDER BY t.id ${order}
    LIMIT ${PAGE_ROWS_MAX}
  ) t
  ORDER BY t.id ${order}
  LIMIT $4
) t`,
    LIMIT_AT,
  )
  const after = position.after ?? first
  const isRoot = parent === 'none'
  const more = isNarrowed
    ? [user ?? null, isRoot ? null : (parent ?? null), isRoot, session_id ?? null, document]
    : []
  const parameters = [...listParameters(project_id, { ...position, after }), last!.id, ...more]
  return { statement, parameters, listing }
}
