import type { FilteredList } from '@annals/kits/lists/listed.js'
import {
  idText,
  insertTerms,
  MOVE_TERMS_VARIABLES,
  moveTerms,
  PLACE,
  type TermedList,
} from '@annals/kits/lists/listed.js'
import { mergedJson, timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { rememberAnswer } from '../log/append/append_queries.js'
import { FIND_OR_CREATE_OWNER } from '../users/user_queries.js'

export const SPACE_LIST: TermedList = { table: 'learning_spaces', document: 'meta' }

function learningSpaceJson(space: string): string {
  return `concat('{"id":"', ${space}.id, '",', coalesce('"user_id":"' || ${space}.user_id || '"', '"user_id":null'), ',"meta":', ${space}.meta,
    ',"created_at":"', ${timestampText(`${space}.created_at`)}, '","updated_at":"', ${timestampText(`${space}.updated_at`)}, '"}')`
}

export const CREATE_LEARNING_SPACE = storedFunctionIn('learning/create_learning_space.sql', {
  find_or_create_owner: FIND_OR_CREATE_OWNER,
  insert_terms: insertTerms(
    SPACE_LIST,
    'p_project',
    '(SELECT made.id, made.user_id, made.meta, made.created_at)',
  ),
  learning_space_json: learningSpaceJson('made'),
  remember_answer: rememberAnswer('p_id'),
})

export const READ_LEARNING_SPACE = prepared(
  'read_learning_space',
  `SELECT ${learningSpaceJson('l')} AS json FROM learning_spaces l WHERE l.project_id = $1 AND l.id = $2`,
)

export const MERGE_META = storedFunctionIn('learning/merge_learning_space_meta.sql', {
  move_terms_variables: MOVE_TERMS_VARIABLES,
  merged_json: mergedJson('before.meta', "(p_body -> 'meta')"),
  move_terms: moveTerms(SPACE_LIST, 'before', 'after'),
  learning_space_json: learningSpaceJson('made'),
})

export const LEARNING_SPACES: FilteredList = {
  list: SPACE_LIST,
  listing: {
    columns: {
      ...PLACE,
      user_id: { sql: 't.user_id', as: 'optional' },
      meta: { sql: 't.meta', as: 'token', is_bounded: true },
      updated_at: { sql: 't.updated_at', as: 'time' },
    },
    json: ({ id, user_id, meta, created_at, updated_at }, at) =>
      `{"id":"${id![at]}","user_id":${idText(user_id![at])},"meta":${meta![at]},"created_at":"${created_at![at]}","updated_at":"${updated_at![at]}"}`,
  },
}
