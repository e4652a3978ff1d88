import { timestampText } from '@annals/kits/lists/resource_json.js'
import { askingEveryProject, planned, prepared } from '@annals/kits/postgres/statement.js'

/** Taking turns: a space is worked on by one process at a time, which holds its lane until `lane_until`. */

/** Projects with a model of their own. Rows: id. */
export const FIND_PROJECTS_WITH_MODEL = prepared(
  'find_projects_with_model',
  'SELECT p.id FROM projects p WHERE p.model IS NOT NULL',
)

/**
 * Spaces where it is a session's turn, those that wait longest, and as many of each project before the next of any.
 * Parameters: $1 projects, or null for all, $2 spaces to leave out, $3 of a project at most, $4 in all. Rows: project_id,
 * learning_space_id.
 */
export const FIND_DUE_SPACES = askingEveryProject(
  planned,
  'find_due_spaces',
  `SELECT r.project_id, r.learning_space_id FROM (
  SELECT x.project_id, x.learning_space_id, row_number() OVER (PARTITION BY x.project_id ORDER BY min(x.due_at)) AS place
  FROM {space_sessions} x
  WHERE x.due_at <= now() AND ($1::uuid[] IS NULL OR x.project_id = ANY ($1::uuid[])) AND x.learning_space_id <> ALL ($2::uuid[])
  GROUP BY x.project_id, x.learning_space_id
) r WHERE r.place <= $3::bigint ORDER BY r.place LIMIT $4::bigint`,
)

const HELD = 'l.project_id = $1 AND l.id = $2 AND l.lane_until = $3::timestamptz'

/** As text: Citus allows no function of times in RETURNING. */
function laneUntil(update: string): string {
  return `WITH l AS (${update}) SELECT ${timestampText('l.lane_until')} AS lane_until FROM l`
}

/** Parameters of each: $1 project, $2 space. */
export const LANE = {
  take: prepared(
    'take_lane',
    laneUntil(`UPDATE learning_spaces AS l SET lane_until = now() + make_interval(secs => $3)
WHERE l.project_id = $1 AND l.id = $2 AND l.lane_until <= now() RETURNING l.lane_until`),
  ),
  /** $3 lane_until, $4 seconds. Row: lane_until, if it is still this one's. */
  keep: prepared(
    'keep_lane',
    laneUntil(
      `UPDATE learning_spaces AS l SET lane_until = now() + make_interval(secs => $4) WHERE ${HELD} RETURNING l.lane_until`,
    ),
  ),
  /** $3 lane_until. */
  leave: {
    ...prepared('leave_lane', `UPDATE learning_spaces AS l SET lane_until = now() WHERE ${HELD}`),
    outlivesAbort: true,
  },
  /** Keeps others out until the commit. $3 lane_until. Row: one if it is still this one's. */
  lock: prepared('lock_lane', `SELECT l.id FROM learning_spaces l WHERE ${HELD} FOR NO KEY UPDATE`),
} as const

/** How long a session waits for its turn at most: until a run is quiet, or a model is there again. */
export const TURNS_WAIT = { column: 'due_at', at_most: [{ s: 600 }] } as const
/** How long a lane is held at most, longer than a model may take. */
export const LANES_WAIT = { column: 'lane_until', at_most: [{ s: 700 }] } as const

/** How a space learns. Parameters: $1 project, $2 space. Row: user_id, mode, space_max, model (JSON or null), project_max. */
export const READ_LEARNING = prepared(
  'read_learning',
  `SELECT l.user_id, coalesce(p.mode, 'suggest') AS mode, p.policy ->> 'max_tokens_per_day' AS space_max,
  (SELECT j.model FROM projects j WHERE j.id = $1)::text AS model,
  (SELECT j.max_model_tokens_per_day FROM projects j WHERE j.id = $1) AS project_max
FROM learning_spaces l LEFT JOIN space_policies p ON p.project_id = $1 AND p.learning_space_id = l.id
WHERE l.project_id = $1 AND l.id = $2`,
)

/**
 * The next session of a space whose turn it is, which is begun: whoever asks for it from now on wants another turn. A turn
 * that is interrupted is due at once, even if the clock was set back after it began.
 * Parameters: $1 project, $2 space, $3 status. Row: session_id, learnt_seq, outcome, attempts.
 */
export const BEGIN_SESSION = prepared(
  'begin_reflection',
  `UPDATE space_sessions AS x SET status = $3, asked = false, due_at = 'epoch', updated_at = greatest(now(), x.updated_at)
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND x.session_id = (
  SELECT o.session_id FROM space_sessions o
  WHERE o.project_id = $1 AND o.learning_space_id = $2 AND o.due_at <= now() ORDER BY o.due_at, o.session_id LIMIT 1)
RETURNING x.session_id, x.learnt_seq, coalesce(x.outcome, '{}')::text AS outcome, x.attempts`,
)

const SESSION = 'x.project_id = $1 AND x.learning_space_id = $2 AND x.session_id = $3'
const moves = (sets: string) =>
  `UPDATE space_sessions AS x SET ${sets}, updated_at = greatest(now(), x.updated_at) WHERE ${SESSION}`

/** Moves a session on. Parameters of each: $1 project, $2 space, $3 session. */
export const SESSION_MOVES = {
  /** $4 status. */
  status: prepared('set_session_status', moves('status = $4')),
  /** $4 seq up to which it was read. */
  complete: prepared(
    'complete_reflection',
    moves("status = 'completed', due_at = NULL, reflected_seq = $4::bigint, error = NULL, attempts = 0"),
  ),
  /**
   * Entries that came meanwhile have their turn when the session is quiet; at once if somebody asked for it, or if it is another
   * outcome than $4, the one that was read.
   */
  wait: prepared(
    'await_next_turn',
    `${moves(`status = 'queued', due_at = now() + CASE WHEN x.asked OR x.outcome ? 'reward' AND x.outcome IS DISTINCT FROM $4::jsonb
  THEN interval '0' ELSE interval '10 minutes' END`)} AND x.learnt_seq > x.reflected_seq`,
  ),
  /** $4 status, $5 error, $6 attempts, $7 seconds until the next one, or null. */
  fail: prepared(
    'fail_reflection',
    moves('status = $4, error = $5, attempts = $6, due_at = now() + make_interval(secs => $7)'),
  ),
} as const

const SUCCEEDED = (row: string) =>
  `CASE WHEN jsonb_typeof(${row}.outcome -> 'reward') = 'number' THEN (${row}.outcome ->> 'reward')::float8 >= 0.5 END`

/**
 * The first run of the same task that ended otherwise. Parameters: $1 project, $2 space, $3 session, $4 group, $5
 * whether it succeeded. Row: session_id, learnt_seq, outcome.
 */
export const FIND_CONTRAST = prepared(
  'find_contrasting_run',
  `SELECT x.session_id, x.learnt_seq, x.outcome::text AS outcome FROM space_sessions x
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND x.session_id <> $3 AND x.learnt_seq > 0
  AND x.outcome ->> 'group' = $4 AND ${SUCCEEDED('x')} = NOT $5::boolean
ORDER BY x.created_at, x.session_id LIMIT 1`,
)

/** Runs with an outcome, and whether they called a tool. Parameters: $1 project, $2 space, $3 tool. Rows: group, has_succeeded, follows. */
export const READ_TASK_RUNS = prepared(
  'read_task_runs',
  `SELECT x.outcome ->> 'group' AS "group", ${SUCCEEDED('x')} AS has_succeeded, x.tools ? $3 AS follows
FROM space_sessions x
WHERE x.project_id = $1 AND x.learning_space_id = $2 AND x.outcome ? 'group' AND ${SUCCEEDED('x')} IS NOT NULL LIMIT 10000`,
)

const FIRST_ENTRIES = 10
const LAST_ENTRIES = 300
/** Of a log up to a seq, where the first entry is that READ_ENTRIES_FOR_MODEL has no row for. */
export const seqsBetween = (seq: number) => (seq > FIRST_ENTRIES + LAST_ENTRIES ? [FIRST_ENTRIES + 1] : [])
const ENTRY_BYTES_MAX = 32 * 1024
const BYTES_MAX = 512 * 1024

/**
 * The beginning and the end of a log, without retracted entries; data is null where there is no room for a long one.
 * Parameters: $1 project, $2 session, $3 seq up to which it is read. Rows: as entries.
 */
export const READ_ENTRIES_FOR_MODEL = prepared(
  'read_entries_for_model',
  `SELECT o.seq, o.id, o.kind, o.type, o.role, o.format, ${timestampText('coalesce(o.occurred_at, o.created_at)')} AS created_at,
  CASE WHEN o.bytes <= ${ENTRY_BYTES_MAX} AND (o.bytes_behind <= ${BYTES_MAX} OR o.seq <= ${FIRST_ENTRIES}) THEN o.data::text END AS data
FROM (
  SELECT i.*, sum(CASE WHEN i.bytes <= ${ENTRY_BYTES_MAX} THEN i.bytes ELSE 0 END) OVER (ORDER BY i.seq DESC) AS bytes_behind FROM entries i
  WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq <= $3 AND (i.seq <= ${FIRST_ENTRIES} OR i.seq > $3 - ${LAST_ENTRIES})
    AND i.retracted_by IS NULL
) o
ORDER BY o.seq`,
)

/** Statements that a new one may repeat or contradict. Parameters: $1 project, $2 space. Rows: id, kind, text. */
export const READ_KNOWN_STATEMENTS = prepared(
  'read_known_statements',
  `SELECT s.id, s.statement_kind AS kind, s.text FROM statements s
WHERE s.project_id = $1 AND s.learning_space_id = $2 AND s.state <> 'revoked' ORDER BY s.created_at, s.id`,
)
