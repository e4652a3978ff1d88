import { timestamps, timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'
import { storedFunction } from '../../postgres/stored_function.js'

/** The name of the consumer of changes that reads sessions for spaces. */
export const LEARNING_CONSUMER = 'learning'

function spaceSessionJson(row: string): string {
  return `json_build_object('id', ${row}.id, 'learning_space_id', ${row}.learning_space_id, 'session_id', ${row}.session_id,
    'status', ${row}.status, 'error', ${row}.error, 'learnt_seq', ${row}.learnt_seq, ${timestamps(row)})::text`
}

/**
 * Gives a session to a space, and marks it, so that its log is read from the beginning. What failed is tried again, and
 * a session that is known has its turn now if `p_now` says so.
 * The mark is taken from whoever is at work on it without knowing of the space. Answer: the record as JSON, or why
 * not: no_space, no_session, other_user, known.
 */
export const ATTACH_SESSION = storedFunction(
  'attach_session_to_space',
  'p_project uuid, p_space uuid, p_session uuid, p_id uuid, p_now boolean',
  `DECLARE
  space_user uuid;
  session_user_id uuid;
  made record;
BEGIN
  SELECT l.user_id INTO space_user FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_space';
  END IF;
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'no_session';
  END IF;
  SELECT s.user_id INTO session_user_id FROM sessions s WHERE s.project_id = p_project AND s.id = p_session;
  IF space_user IS NOT NULL AND session_user_id IS DISTINCT FROM space_user THEN
    RETURN 'other_user';
  END IF;
  INSERT INTO space_sessions AS x (project_id, learning_space_id, session_id, id, status, asked, created_at, updated_at)
  VALUES (p_project, p_space, p_session, p_id, 'pending', p_now, now(), now())
  ON CONFLICT (project_id, session_id, learning_space_id) DO NOTHING RETURNING x.* INTO made;
  IF NOT FOUND THEN
    UPDATE space_sessions AS x SET status = 'pending', error = NULL, attempts = 0, asked = p_now, due_at = NULL, updated_at = now()
    WHERE x.project_id = p_project AND x.session_id = p_session AND x.learning_space_id = p_space
      AND (x.status = 'failed' OR p_now AND x.status IN ('pending', 'queued', 'completed'))
    RETURNING x.* INTO made;
    IF NOT FOUND THEN
      RETURN 'known';
    END IF;
  END IF;
  INSERT INTO change_marks AS c (project_id, consumer, session_id, marked_at, due_at, failures)
  VALUES (p_project, '${LEARNING_CONSUMER}', p_session, now(), now(), 0)
  ON CONFLICT (project_id, session_id, consumer) DO UPDATE SET due_at = excluded.due_at, lease = NULL;
  RETURN ${spaceSessionJson('made')};
END`,
)

export const READ_SPACE_SESSION = prepared(
  'read_space_session',
  `SELECT ${spaceSessionJson('x')} AS json FROM space_sessions x
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND x.session_id = $3`,
)

/** In the order in which they were given. Parameters: $1 project, $2 space, $3 created_at and $4 session to begin behind, $5 how many. */
export const LIST_SPACE_SESSIONS = prepared(
  'list_space_sessions',
  `SELECT ${spaceSessionJson('x')} AS json, ${timestampText('x.created_at')} AS created_at, x.session_id AS id FROM space_sessions x
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND (x.created_at, x.session_id) > ($3::timestamptz, $4::uuid)
ORDER BY x.created_at, x.session_id LIMIT $5`,
)

/** Parameters: $1 project, $2 space. Row: json, if there is such a space. */
export const READ_POLICY = prepared(
  'read_space_policy',
  `SELECT (coalesce(p.policy, '{}') || jsonb_build_object('mode', coalesce(p.mode, 'suggest')))::text AS json
FROM learning_spaces l LEFT JOIN space_policies p ON p.project_id = $1 AND p.learning_space_id = l.id
WHERE l.project_id = $1 AND l.id = $2`,
)

/** Sets the policy of a space, and marks its sessions, so that they are read under it. Answer: null if there is no such space. */
export const SET_POLICY = storedFunction(
  'set_space_policy',
  'p_project uuid, p_space uuid, p_policy jsonb',
  `BEGIN
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO space_policies AS p (project_id, learning_space_id, mode, policy, updated_at)
  VALUES (p_project, p_space, p_policy ->> 'mode', p_policy - 'mode', now())
  ON CONFLICT (project_id, learning_space_id) DO UPDATE SET mode = excluded.mode, policy = excluded.policy, updated_at = excluded.updated_at;
  INSERT INTO change_marks AS c (project_id, consumer, session_id, marked_at, due_at, failures)
  SELECT p_project, '${LEARNING_CONSUMER}', x.session_id, now(), now(), 0
  FROM space_sessions x WHERE x.project_id = p_project AND x.learning_space_id = p_space ORDER BY x.session_id
  ON CONFLICT (project_id, session_id, consumer) DO NOTHING;
  RETURN 'set';
END`,
)
