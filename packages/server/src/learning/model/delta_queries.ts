import { prepared } from '../../postgres/statement.js'
import { storedFunction } from '../../postgres/stored_function.js'
import { findOrCreateSkill, STATEMENTS_MAX } from '../statements/statement_queries.js'

const users = (
  polarity: string,
) => `(SELECT count(DISTINCT coalesce(e.user_id, '00000000-0000-0000-0000-000000000000'))
    FROM statement_cites c JOIN sessions e ON e.project_id = p_project AND e.id = c.session_id
    WHERE c.project_id = p_project AND c.statement_id = known AND c.polarity = '${polarity}')`

/**
 * Applies one change to the statements of a space: adds one, or citations to one. `p_statement`: null to add it. The same
 * words again are the same statement. Answer: the statement as JSON with what decides over its state, null if the space
 * is full or it is gone.
 */
export const APPLY_DELTA = storedFunction(
  'apply_learning_delta',
  'p_project uuid, p_space uuid, p_statement uuid, p_polarity text, p_new jsonb, p_cites jsonb',
  `DECLARE
  known uuid := p_statement;
  skill uuid;
  digest text := encode(sha256(convert_to(concat_ws(E'\\n', 'model', p_new ->> 'kind', p_new ->> 'text'), 'UTF8')), 'hex');
  is_origin boolean := false;
BEGIN
  IF known IS NULL THEN
    SELECT s.id INTO known FROM statements s
    WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = digest AND s.state <> 'revoked';
  END IF;
  IF known IS NULL THEN
    IF (SELECT count(*) FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = p_space) >= ${STATEMENTS_MAX} THEN
      RETURN NULL;
    END IF;${findOrCreateSkill("(p_new ->> 'skill')", "(p_new ->> 'description')", "(p_new ->> 'skill_id')::uuid")}
    INSERT INTO statements AS s (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, marker, supports, contradicts, created_at, updated_at)
    VALUES (p_project, p_space, (p_new ->> 'id')::uuid, skill, digest, p_new ->> 'kind', 'proposed', 'model', false, p_new ->> 'text', p_new ->> 'marker', 0, 0, now(), now())
    ON CONFLICT (project_id, learning_space_id, rule_key) DO UPDATE
    SET state = 'proposed', text = excluded.text, marker = excluded.marker, author = excluded.author
    RETURNING s.id INTO known;
    is_origin := true;
  END IF;
  PERFORM FROM statements s WHERE s.project_id = p_project AND s.id = known AND s.state <> 'revoked' FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO statement_cites AS c (project_id, learning_space_id, statement_id, session_id, seq, polarity, quote, is_origin)
  SELECT p_project, p_space, known, r.session_id, r.seq, p_polarity, r.quote, is_origin
  FROM jsonb_to_recordset(p_cites) AS r (session_id uuid, seq bigint, quote text)
  ON CONFLICT (project_id, statement_id, session_id, seq) DO NOTHING;
  UPDATE statements AS s SET updated_at = greatest(now(), s.updated_at),
    supports = (SELECT count(DISTINCT c.session_id) FROM statement_cites c WHERE c.project_id = p_project AND c.statement_id = known AND c.polarity = '+'),
    contradicts = (SELECT count(DISTINCT c.session_id) FROM statement_cites c WHERE c.project_id = p_project AND c.statement_id = known AND c.polarity = '-')
  WHERE s.project_id = p_project AND s.id = known;
  RETURN (SELECT json_build_object('id', s.id, 'kind', s.statement_kind, 'state', s.state, 'author', s.author, 'marker', s.marker,
    'supports', s.supports, 'contradicts', s.contradicts, 'supporters', ${users('+')}, 'contradictors', ${users('-')})
  FROM statements s WHERE s.project_id = p_project AND s.id = known);
END`,
)

export const SET_STATE = prepared(
  'set_statement_state',
  'UPDATE statements AS s SET state = $3 WHERE s.project_id = $1 AND s.id = $2',
)

/** Keeps sessions from being deleted until the commit. Parameters: $1 project, $2 sessions. Rows: those that are there. */
export const LOCK_CITED_SESSIONS = prepared(
  'lock_cited_sessions',
  `SELECT h.session_id FROM session_heads h
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[]) ORDER BY h.session_id FOR KEY SHARE`,
)
