import type { FilteredList } from '../lists/listed.js'
import {
  idText,
  insertTerms,
  MOVE_TERMS_VARIABLES,
  moveTerms,
  PLACE,
  type TermedList,
} from '../lists/listed.js'
import { mergedJson, timestampText } from '../lists/resource_json.js'
import { rememberAnswer } from '../log/append/append_queries.js'
import { prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'
import { FIND_OR_CREATE_OWNER } from '../users/user_queries.js'

export const SPACE_LIST: TermedList = { table: 'learning_spaces', document: 'meta' }

function learningSpaceJson(space: string): string {
  return `concat('{"id":"', ${space}.id, '",', coalesce('"user_id":"' || ${space}.user_id || '"', '"user_id":null'), ',"meta":', ${space}.meta,
    ',"created_at":"', ${timestampText(`${space}.created_at`)}, '","updated_at":"', ${timestampText(`${space}.updated_at`)}, '"}')`
}

/**
 * Creates a learning space, its user if new, and its idempotency key. `p_id` is the space's, `p_user` an identifier or
 * null, `p_new_user` an id for a new user, `p_key` may be null. Answer: the space as JSON; null: see
 * FIND_OR_CREATE_OWNER.
 */
export const CREATE_LEARNING_SPACE = storedFunction(
  'create_learning_space',
  'p_project uuid, p_id uuid, p_user text, p_new_user uuid, p_body jsonb, p_key text, p_request_hash text',
  `DECLARE
  owner uuid;
  made record;
  answer text;
BEGIN${FIND_OR_CREATE_OWNER}
  INSERT INTO learning_spaces AS l (project_id, id, user_id, meta, created_at, updated_at)
  VALUES (p_project, p_id, owner, coalesce(nullif(p_body -> 'meta', 'null'), '{}'), now(), now())
  RETURNING l.* INTO made;${insertTerms(SPACE_LIST, 'p_project', '(SELECT made.id, made.user_id, made.meta, made.created_at)')};
  answer := ${learningSpaceJson('made')};${rememberAnswer('p_id')}
  RETURN answer;
END`,
)

export const READ_LEARNING_SPACE = prepared(
  'read_learning_space',
  `SELECT ${learningSpaceJson('l')} AS json FROM learning_spaces l WHERE l.project_id = $1 AND l.id = $2`,
)

/**
 * Merges into the meta of a space, unless the result exceeds `p_bytes_max`. Answer: the merged space as JSON, empty if
 * it is too large; null if there is no such space.
 */
export const MERGE_META = storedFunction(
  'merge_learning_space_meta',
  'p_project uuid, p_id uuid, p_body jsonb, p_bytes_max int',
  `DECLARE
  before record;
  made record;
  after jsonb;
  ${MOVE_TERMS_VARIABLES}
BEGIN
  SELECT l.id, l.user_id, l.meta, l.created_at INTO before
  FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_id FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT ${mergedJson('before.meta', "(p_body -> 'meta')")} INTO after;
  IF octet_length(after::text) > p_bytes_max THEN
    RETURN '';
  END IF;${moveTerms(SPACE_LIST, 'before', 'after')}
  UPDATE learning_spaces AS l SET meta = after, updated_at = greatest(now(), l.updated_at)
  WHERE l.project_id = p_project AND l.id = p_id
  RETURNING l.* INTO made;
  RETURN ${learningSpaceJson('made')};
END`,
)

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
