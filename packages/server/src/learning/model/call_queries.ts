import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { findOrCreateSkill, recountText, STATEMENTS_MAX } from '../statements/statement_queries.js'

const DAY = "interval '1 day'"
const today = (at: string) => `(${at} AT TIME ZONE 'UTC')::date`

export const BEGIN_CALL = storedFunctionIn('learning/model/begin_learning_call.sql', {
  day: DAY,
  today: today('now()'),
})

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
 * Marks answers as applied in this transaction. The decisions of a curator have no words, and serve every session that
 * leads to the same question. Parameters: $1 project, $2 ids. Rows: those that were answered.
 */
export const END_ANSWERS = prepared(
  'end_learning_answers',
  `UPDATE learning_calls AS c SET status = 'applied', answer = CASE WHEN c.step = 'curate' THEN c.answer END
WHERE c.project_id = $1 AND c.id = ANY ($2::uuid[]) AND c.status = 'answered' RETURNING c.id`,
)

/**
 * A space's use of a model. Parameters: $1 project, $2 space, $3 days, today among them. Row: json, if there is
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

export const APPLY_DELTA = storedFunctionIn('learning/model/apply_learning_delta.sql', {
  statements_max: STATEMENTS_MAX,
  find_or_create_skill: findOrCreateSkill(
    "(p_new ->> 'skill')",
    "(p_new ->> 'description')",
    "(p_new ->> 'skill_id')::uuid",
  ),
  recount: recountText('s.id = known'),
  independent_supporters: independent('+'),
  independent_contradictors: independent('-'),
})

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
