import { timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'
import { storedFunction } from '../../postgres/stored_function.js'
import { findOrCreateSkill, recountText, STATEMENTS_MAX } from '../statements/statement_queries.js'

const DAY = "interval '1 day'"
const today = (at: string) => `(${at} AT TIME ZONE 'UTC')::date`

/**
 * Begins a call, unless its input was answered before, or a budget does not allow it. `p_tokens`: an estimate, which
 * counts until the call ends: for the space in 24 hours, for the project on this day, in UTC, whose row lets one call
 * pass at a time. Answer: `send` and the id; `answered` and the answer; `applied`; `space` or `project`,
 * whose budget is used up; null if the space or a session is gone. A call that is sent outlives the machine, so that it
 * always counts.
 */
export const BEGIN_CALL = storedFunction(
  'begin_learning_call',
  `p_project uuid, p_space uuid, p_id uuid, p_hash text, p_step text, p_model text, p_sessions uuid[],
  p_tokens bigint, p_space_max bigint, p_project_max bigint`,
  `DECLARE
  known record;
BEGIN
  PERFORM FROM learning_spaces l WHERE l.project_id = p_project AND l.id = p_space FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions) ORDER BY h.session_id FOR KEY SHARE;
  IF (SELECT count(*) FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions)) < cardinality(p_sessions) THEN
    RETURN NULL;
  END IF;
  SELECT c.id, c.status, c.answer INTO known FROM learning_calls c
  WHERE c.project_id = p_project AND c.learning_space_id = p_space AND c.input_hash = p_hash FOR UPDATE;
  IF known.status IN ('answered', 'applied') AND known.answer IS NOT NULL THEN
    RETURN concat('answered ', known.id, ' ', known.answer);
  ELSIF known.status = 'applied' THEN
    RETURN 'applied';
  END IF;
  IF (SELECT coalesce(sum(u.tokens_in + u.tokens_out), 0) FROM learning_calls u
    WHERE u.project_id = p_project AND u.learning_space_id = p_space AND u.sent_at > now() - ${DAY}) + p_tokens > p_space_max THEN
    RETURN 'space';
  END IF;
  IF p_tokens > p_project_max THEN
    RETURN 'project';
  END IF;
  PERFORM set_config('synchronous_commit', 'on', true);
  INSERT INTO usage_days AS u (project_id, day, model_tokens) VALUES (p_project, ${today('now()')}, p_tokens)
  ON CONFLICT (project_id, day) DO UPDATE SET model_tokens = u.model_tokens + excluded.model_tokens
  WHERE u.model_tokens + excluded.model_tokens <= p_project_max;
  IF NOT FOUND THEN
    RETURN 'project';
  END IF;
  INSERT INTO learning_calls AS c (project_id, learning_space_id, id, input_hash, step, model, session_id, other_session_id, status, attempts, tokens_in, tokens_out, created_at, sent_at)
  VALUES (p_project, p_space, p_id, p_hash, p_step, p_model, p_sessions[1], p_sessions[2], 'sent', 1, p_tokens, 0, now(), now())
  ON CONFLICT (project_id, learning_space_id, input_hash) DO UPDATE
  SET status = 'sent', model = excluded.model, attempts = c.attempts + 1, tokens_in = c.tokens_in + excluded.tokens_in, sent_at = excluded.sent_at;
  RETURN concat('send ', coalesce(known.id, p_id));
END`,
)

/**
 * Ends a call: keeps what was answered, or says why nothing was. Parameters: $1 project, $2 id, $3 answer or null, $4
 * error or null, $5 what the estimate was too high by, $6 tokens out. What quotes a session that is gone is not kept: no
 * row then, as the row no longer names the session.
 */
export const END_CALL = prepared(
  'end_learning_call',
  `WITH c AS (
UPDATE learning_calls AS c SET answer = $3::jsonb, error = $4, status = CASE WHEN $4::text IS NULL THEN 'answered' ELSE 'failed' END,
  tokens_in = greatest(c.tokens_in - $5::bigint, 0), tokens_out = c.tokens_out + $6::bigint
WHERE c.project_id = $1 AND c.id = $2 AND c.status = 'sent' RETURNING c.id, c.sent_at
) SELECT c.id, ${timestampText('c.sent_at')} AS sent_at FROM c`,
)

/** Corrects the estimate. Parameters: $1 project, $2 when the call was sent, $3 tokens, which may be fewer than none. */
export const ADD_MODEL_TOKENS = prepared(
  'add_model_tokens',
  `UPDATE usage_days AS u SET model_tokens = greatest(u.model_tokens + $3::bigint, 0)
WHERE u.project_id = $1 AND u.day = ${today('$2::timestamptz')}`,
)

/** An answer must outlive the machine, other than what consumers of changes write. */
export const DURABLE = prepared('commit_durably', "SELECT set_config('synchronous_commit', 'on', true)")

/**
 * What it says is being applied in this transaction. The decisions of a curator have no words, and serve every session that
 * leads to the same question. Parameters: $1 project, $2 ids. Rows: those that were answered.
 */
export const END_ANSWERS = prepared(
  'end_learning_answers',
  `UPDATE learning_calls AS c SET status = 'applied', answer = CASE WHEN c.step = 'curate' THEN c.answer END
WHERE c.project_id = $1 AND c.id = ANY ($2::uuid[]) AND c.status = 'answered' RETURNING c.id`,
)

/**
 * What a space has used of a model. Parameters: $1 project, $2 space, $3 days, today among them. Row: json, if there is
 * such a space.
 */
export const READ_SPACE_USAGE = prepared(
  'read_space_usage',
  `SELECT json_build_object(
    'tokens', json_build_object('used', (SELECT coalesce(sum(u.tokens_in + u.tokens_out), 0)::bigint FROM learning_calls u
      WHERE u.project_id = $1 AND u.learning_space_id = $2 AND u.sent_at > now() - ${DAY}), 'max', p.policy -> 'max_tokens_per_day'),
    'days', (SELECT coalesce(json_agg(d ORDER BY d.day DESC, d.step), '[]') FROM (
      SELECT to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, c.step, count(*) AS inputs, sum(c.attempts) AS calls,
        count(*) FILTER (WHERE c.status = 'failed') AS failed, sum(c.tokens_in)::bigint AS tokens_in, sum(c.tokens_out)::bigint AS tokens_out
      FROM learning_calls c WHERE c.project_id = $1 AND c.learning_space_id = $2
        AND c.created_at >= date_trunc('day', now(), 'UTC') - make_interval(days => $3::int - 1)
      GROUP BY 1, 2) d))::text AS json
FROM learning_spaces l LEFT JOIN space_policies p ON p.project_id = $1 AND p.learning_space_id = $2
WHERE l.project_id = $1 AND l.id = $2`,
)

/**
 * Takes from calls what they have of sessions that go: their answers, and digests of them. What they cost stays.
 * Parameters: $1 project, $2 sessions, $3 how many. Row: gone.
 */
export const ERASE_CALLS = prepared(
  'erase_calls_of_sessions',
  `WITH gone AS (
  UPDATE learning_calls AS c SET answer = NULL, input_hash = c.id::text, session_id = NULL, other_session_id = NULL,
    status = CASE WHEN c.status IN ('sent', 'answered') THEN 'failed' ELSE c.status END,
    error = CASE WHEN c.status IN ('sent', 'answered') THEN 'A session that was shown to the model was deleted.' ELSE c.error END
  WHERE c.project_id = $1 AND c.id = ANY (ARRAY(
    SELECT o.id FROM learning_calls o WHERE o.project_id = $1 AND (o.session_id = ANY ($2::uuid[]) OR o.other_session_id = ANY ($2::uuid[])) LIMIT $3))
  RETURNING 1 AS one
)
SELECT count(*) AS gone FROM gone`,
)

/**
 * How many sessions and users support a statement, or contradict it, each of its own: an entry that a copy has from another
 * session is that session's, and a session that belongs to nobody stands for no user.
 */
const independent = (polarity: string) => `(
    WITH RECURSIVE cited AS (
      SELECT c.session_id, c.session_id AS origin, c.seq FROM statement_cites c
      WHERE c.project_id = p_project AND c.statement_id = known AND c.polarity = '${polarity}'
      UNION
      SELECT c.session_id, e.forked_from, c.seq
      FROM cited c JOIN sessions e ON e.project_id = p_project AND e.id = c.origin AND c.seq <= e.forked_at_seq
    )
    SELECT json_build_object(
      'sessions', least(count(DISTINCT c.session_id), count(DISTINCT o.id)),
      'users', least(count(DISTINCT s.user_id), count(DISTINCT o.user_id)))
    FROM cited c JOIN sessions s ON s.project_id = p_project AND s.id = c.session_id
    JOIN sessions o ON o.project_id = p_project AND o.id = c.origin AND c.seq > coalesce(o.forked_at_seq, 0))`

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
    INSERT INTO statements AS s (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, marker, origins, supports, contradicts, created_at, updated_at)
    VALUES (p_project, p_space, (p_new ->> 'id')::uuid, skill, digest, p_new ->> 'kind', 'proposed', 'model', false, p_new ->> 'text', p_new ->> 'marker', p_new -> 'origins', 0, 0, now(), now())
    ON CONFLICT (project_id, learning_space_id, rule_key) DO UPDATE
    SET state = 'proposed', skill_id = excluded.skill_id, text = excluded.text, marker = excluded.marker, author = excluded.author, origins = excluded.origins
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
  ON CONFLICT (project_id, statement_id, session_id, seq) DO NOTHING;${recountText('s.id = known')}
  RETURN (SELECT json_build_object('id', s.id, 'kind', s.statement_kind, 'state', s.state, 'author', s.author, 'marker', s.marker,
    'contradicts', s.contradicts, 'supporters', ${independent('+')}, 'contradictors', ${independent('-')})
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
