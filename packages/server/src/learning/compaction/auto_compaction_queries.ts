import { timestampText } from '@annals/kits/lists/resource_json.js'
import { askingEveryProject, planned, prepared } from '@annals/kits/postgres/statement.js'
import { storedInsert } from '@annals/kits/postgres/stored_function.js'
import { seqText, validCompactionsText } from '../../log/read/compaction_queries.js'

/** Sessions whose context was found to be too long: see migrations/0047_auto_compaction.sql. */

/** Messages of a session that are added up at most: as many as a context is made of. */
const MESSAGES_MAX = 10_000
/** A context is checked again once it has grown by this share of its limit. */
export const GROWTH_SHARE = 4

/** The tokens of a session's context, before it is cut: of the newest summary and of what follows what it covers. */
const CONTEXT_TOKENS = `(coalesce(c.tokens, 0) + (
  SELECT coalesce(sum(m.tokens), 0) FROM (
    SELECT e.tokens FROM entries e
    WHERE e.project_id = $1 AND e.session_id = h.session_id AND e.kind = 'message' AND e.retracted_by IS NULL AND e.seq > coalesce(c.to_seq, 0)
    ORDER BY e.seq DESC LIMIT ${MESSAGES_MAX}
  ) m))::bigint`

const NEWEST_COMPACTION = `LEFT JOIN LATERAL (
  SELECT ${seqText('to_seq')} AS to_seq,
    CASE WHEN jsonb_typeof(e.data -> 'tokens') = 'number' THEN (e.data -> 'tokens')::numeric END AS tokens
  FROM entries e WHERE ${validCompactionsText('$1', 'h.session_id')} ORDER BY e.seq DESC LIMIT 1
) c ON true`

/**
 * Sessions whose contexts are longer than the project wants them, and that do not wait for a summary yet. Parameters:
 * $1 project, $2 sessions. Rows: session_id, tokens.
 */
export const FIND_LONG_CONTEXTS = prepared(
  'find_long_contexts',
  `SELECT l.session_id, l.tokens FROM (
  SELECT h.session_id, j.auto_compact_tokens AS tokens_max, a.tokens AS tokens_seen, ${CONTEXT_TOKENS} AS tokens
  FROM session_heads h
  JOIN projects j ON j.id = $1
  LEFT JOIN auto_compactions a ON a.project_id = $1 AND a.session_id = h.session_id
  ${NEWEST_COMPACTION}
  WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[]) AND h.total_tokens > j.auto_compact_tokens AND a.due_at IS NULL
) l
WHERE l.tokens > l.tokens_max
  AND (l.tokens_seen IS NULL OR l.tokens < l.tokens_seen OR l.tokens >= l.tokens_seen + l.tokens_max / ${GROWTH_SHARE})
ORDER BY l.session_id`,
)

/**
 * Keeps sessions from being deleted until the commit; those that are being deleted, or are locked by somebody who waits for
 * this transaction, are left out. Parameters: $1 project, $2 sessions. Rows: session_id.
 */
export const HOLD_SESSIONS = prepared(
  'hold_sessions',
  `SELECT h.session_id FROM session_heads h
WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[]) ORDER BY h.session_id FOR KEY SHARE SKIP LOCKED`,
)

/** Parameters: $1 project, $2 sessions, $3 the tokens of their contexts. */
export const AWAIT_SUMMARIES = storedInsert(
  'await_summaries',
  ['uuid[]', 'bigint[]'],
  `INSERT INTO auto_compactions AS a (project_id, session_id, tokens, due_at)
SELECT $1, x.session_id, x.tokens, now() FROM unnest($2, $3) AS x (session_id, tokens)
ON CONFLICT (project_id, session_id) DO UPDATE SET due_at = excluded.due_at, tokens = excluded.tokens, attempts = 0`,
)

/** Parameters: $1 project, $2 how many. Rows: one for each that is gone. */
export const ERASE_AUTO_COMPACTIONS = prepared(
  'erase_some_auto_compactions',
  `DELETE FROM auto_compactions AS t WHERE t.project_id = $1 AND t.ctid = ANY (ARRAY(
  SELECT o.ctid FROM auto_compactions o WHERE o.project_id = $1 LIMIT $2)) RETURNING 1 AS gone`,
)

/** How long a session waits for its summary at most, and is held at most: as spaces for their turns. */
export const SUMMARIES_WAIT = [
  { column: 'due_at', at_most: [{ s: 600 }] },
  { column: 'held_until', at_most: [{ s: 700 }] },
] as const

/**
 * Sessions that wait for a summary, as spaces in FIND_DUE_SPACES. Parameters: $1 projects, or null for all, $2 sessions to
 * leave out, $3 of a project at most, $4 in all. Rows: project_id, session_id.
 */
export const FIND_DUE_SUMMARIES = askingEveryProject(
  planned,
  'find_due_summaries',
  `SELECT r.project_id, r.session_id FROM (
  SELECT a.project_id, a.session_id, row_number() OVER (PARTITION BY a.project_id ORDER BY a.due_at) AS place
  FROM {auto_compactions} a
  WHERE a.due_at <= now() AND a.held_until <= now() AND ($1::uuid[] IS NULL OR a.project_id = ANY ($1::uuid[])) AND a.session_id <> ALL ($2::uuid[])
) r WHERE r.place <= $3::bigint ORDER BY r.place LIMIT $4::bigint`,
)

const ONE = 'a.project_id = $1 AND a.session_id = $2'
const HELD = `${ONE} AND a.held_until = $3::timestamptz`
/** As text: Citus allows no function of times in RETURNING. */
const held = (update: string) =>
  `WITH a AS (${update}) SELECT a.to_seq, a.except_seq, a.tokens, a.attempts, ${timestampText('a.held_until')} AS held_until FROM a`

/** A session whose summary one process writes. Parameters of each: $1 project, $2 session; but of `take`, $3 held_until. */
export const SUMMARY_TURN = {
  /** $3 seconds. Row: to_seq, except_seq, tokens, attempts, held_until, if it waits and nobody holds it. */
  take: prepared(
    'take_summary_turn',
    held(`UPDATE auto_compactions AS a SET held_until = now() + make_interval(secs => $3)
WHERE ${ONE} AND a.held_until <= now() AND a.due_at <= now() RETURNING a.*`),
  ),
  /** $4 seconds. Row: as of `take`, if it is still this one's. */
  keep: prepared(
    'keep_summary_turn',
    held(
      `UPDATE auto_compactions AS a SET held_until = now() + make_interval(secs => $4) WHERE ${HELD} RETURNING a.*`,
    ),
  ),
  /** $4 to_seq, $5 except_seq. */
  decide: prepared(
    'decide_summary',
    `UPDATE auto_compactions AS a SET to_seq = $4, except_seq = $5 WHERE ${HELD} RETURNING a.session_id`,
  ),
  /** A summary was appended: what the context had before says nothing of when the next one is due. */
  written: prepared(
    'note_summary_written',
    `UPDATE auto_compactions AS a SET tokens = 0, attempts = 0 WHERE ${HELD}`,
  ),
  /** Ends the turn; there may be more to do. */
  leave: {
    ...prepared('leave_summary_turn', `UPDATE auto_compactions AS a SET held_until = now() WHERE ${HELD}`),
    outlivesAbort: true,
  },
  /** The part that was decided on is done. $4 seconds until the next turn, or null. */
  end: prepared(
    'end_summary',
    `UPDATE auto_compactions AS a SET to_seq = NULL, except_seq = NULL, attempts = 0, due_at = now() + make_interval(secs => $4) WHERE ${HELD}`,
  ),
  /** $4 attempts, $5 seconds until the next one, or null. */
  fail: prepared(
    'fail_summary',
    `UPDATE auto_compactions AS a SET attempts = $4, due_at = now() + make_interval(secs => $5) WHERE ${HELD}`,
  ),
} as const

/**
 * Marks the summaries of a session that the model wrote as applied: nothing is left to be done with their words. After a kill, one
 * may be in the log already. Parameters: $1 project, $2 session.
 */
export const END_SUMMARY_ANSWERS = prepared(
  'end_summary_answers',
  `UPDATE learning_calls AS c SET status = 'applied', answer = NULL
WHERE c.project_id = $1 AND c.session_id = $2 AND c.step = 'compact' AND c.status = 'answered'`,
)

/** Parameters: $1 project. Row: tokens_max, model (JSON or null), tokens_a_day, max_bytes, proof; tokens_max is null where it is off. */
export const READ_AUTO_COMPACTION = prepared(
  'read_auto_compaction',
  `SELECT j.auto_compact_tokens AS tokens_max, j.model::text AS model, j.max_model_tokens_per_day AS tokens_a_day, j.max_bytes, j.proof
FROM projects j WHERE j.id = $1`,
)

/** The tokens of live messages between two seqs, both included. Parameters: $1 project, $2 session, $3 first, $4 last. Row: tokens. */
export const READ_TOKENS_BETWEEN = prepared(
  'read_tokens_between',
  `SELECT coalesce(sum(e.tokens), 0)::bigint AS tokens FROM entries e
WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq BETWEEN $3::bigint AND $4::bigint AND e.kind = 'message' AND e.retracted_by IS NULL`,
)

/** A part of a log that is read for a summary at once. */
const PIECE = { messages: 500, bytes: 2 * 1024 * 1024 }

/**
 * Messages for a summary, in order, in a bounded piece, at least one; data is null where one alone is too long. Parameters:
 * $1 project, $2 session, $3 first seq, $4 last. Rows: as entries.
 */
export const READ_MESSAGES_FOR_SUMMARY = prepared(
  'read_messages_for_summary',
  `SELECT o.seq, o.id, o.kind, o.type, o.role, o.format, ${timestampText('coalesce(o.occurred_at, o.created_at)')} AS created_at,
  CASE WHEN o.bytes <= ${PIECE.bytes} THEN o.data::text END AS data
FROM (
  SELECT i.*, coalesce(sum(i.bytes) OVER (ORDER BY i.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
  FROM (
    SELECT e.* FROM entries e
    WHERE e.project_id = $1 AND e.session_id = $2 AND e.seq BETWEEN $3::bigint AND $4::bigint AND e.kind = 'message' AND e.retracted_by IS NULL
    ORDER BY e.seq LIMIT ${PIECE.messages}
  ) i
) o
WHERE o.bytes_before < ${PIECE.bytes} ORDER BY o.seq`,
)

/** Live messages by their seqs. Parameters: $1 project, $2 session, $3 seqs. Rows: as entries. */
export const READ_EXCEPTIONS_FOR_SUMMARY = prepared(
  'read_exceptions_for_summary',
  `SELECT e.seq, e.id, e.kind, e.type, e.role, e.format, ${timestampText('coalesce(e.occurred_at, e.created_at)')} AS created_at, e.data::text AS data
FROM unnest($3::bigint[]) AS s (seq)
CROSS JOIN LATERAL (
  SELECT o.* FROM entries o
  WHERE o.project_id = $1 AND o.session_id = $2 AND o.seq = s.seq AND o.kind = 'message' AND o.retracted_by IS NULL OFFSET 0) e
ORDER BY e.seq`,
)
