import { timestampText } from '../lists/resource_json.js'
import { planned, prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'

/** Recounting the tokens of what was stored before all that is sent was counted: see migrations/0031_token_recounts.sql. */

/** Projects with messages to recount that nobody is at. Rows: project_id. */
export const FIND_RECOUNTS = planned(
  'find_recounts',
  'SELECT r.project_id FROM token_recounts r WHERE r.leased_until <= now() LIMIT 100',
)

/** A row that an update returns, with its lease as text: Citus allows no function of times in RETURNING. */
function leased(update: string, columns = ''): string {
  return `WITH l AS (${update}) SELECT ${columns}${timestampText('l.leased_until')} AS leased_until FROM l`
}

const HELD = 'r.project_id = $1 AND r.leased_until = $2::timestamptz'

/** A project is worked on by one process at a time, until `leased_until`. Parameters of each: $1 project. */
export const RECOUNT = {
  /** $2 seconds. Row: session_id, seq, leased_until, if it is free. */
  take: prepared(
    'take_recount',
    leased(
      `UPDATE token_recounts AS r SET leased_until = now() + make_interval(secs => $2)
WHERE r.project_id = $1 AND r.leased_until <= now() RETURNING r.session_id, r.seq, r.leased_until`,
      'l.session_id, l.seq, ',
    ),
  ),
  /** $2 leased_until, $3 session and $4 seq up to which all is done, $5 seconds. Row: leased_until, if it is still this one's. */
  advance: prepared(
    'advance_recount',
    leased(`UPDATE token_recounts AS r SET session_id = $3, seq = $4, leased_until = now() + make_interval(secs => $5)
WHERE ${HELD} RETURNING r.leased_until`),
  ),
  /** Where nothing is left. A copy that is being written has entries but no head yet: it is waited for. $2 leased_until. */
  finish: prepared(
    'finish_recount',
    `DELETE FROM token_recounts AS r WHERE ${HELD}
  AND NOT EXISTS (SELECT FROM erased_sessions x WHERE x.project_id = $1 AND x.leased_until IS NOT NULL)`,
  ),
  /** $2 leased_until. */
  leave: {
    ...prepared('leave_recount', `UPDATE token_recounts AS r SET leased_until = now() WHERE ${HELD}`),
    outlivesAbort: true,
  },
} as const

/** The next sessions. Parameters: $1 project, $2 the session to begin with, $3 how many. Rows: session_id, last_seq. */
export const NEXT_SESSIONS_TO_RECOUNT = prepared(
  'next_sessions_to_recount',
  `SELECT h.session_id, h.last_seq FROM session_heads h
WHERE h.project_id = $1 AND h.session_id >= $2 ORDER BY h.session_id LIMIT $3`,
)

/**
 * Writes the tokens of messages of a session where others are stored, and moves its total by the difference. The head is
 * locked first, as in every change of a session, so that nothing is retracted meanwhile; doing it again changes nothing.
 * A retracted message has its tokens for copies that end ahead of its retraction. Answer: the difference; null without
 * such a session.
 */
export const RECOUNT_TOKENS = storedFunction(
  'recount_tokens',
  'p_project uuid, p_session uuid, p_seqs bigint[], p_tokens int[]',
  `DECLARE
  before record;
  difference bigint := 0;
BEGIN
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  FOR place IN 1 .. cardinality(p_seqs) LOOP
    SELECT e.tokens, e.retracted_by INTO before FROM entries e
    WHERE e.project_id = p_project AND e.session_id = p_session AND e.seq = p_seqs[place];
    CONTINUE WHEN NOT FOUND OR before.tokens = p_tokens[place];
    UPDATE entries AS e SET tokens = p_tokens[place]
    WHERE e.project_id = p_project AND e.session_id = p_session AND e.seq = p_seqs[place];
    IF before.retracted_by IS NULL THEN
      difference := difference + p_tokens[place] - before.tokens;
    END IF;
  END LOOP;
  IF difference <> 0 THEN
    UPDATE session_heads AS h SET total_tokens = h.total_tokens + difference
    WHERE h.project_id = p_project AND h.session_id = p_session;
  END IF;
  RETURN difference::text;
END`,
)
