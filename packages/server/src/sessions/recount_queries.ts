import { passStatements } from '../changes/project_pass.js'
import { prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'

/** Recounting the tokens of what was stored before all that is sent was counted: see migrations/0031_token_recounts.sql. */

/** A copy that is being written has entries but no head yet: it is waited for. */
export const RECOUNT_PASS = passStatements({
  table: 'token_recounts',
  name: 'recount',
  ends: 'NOT EXISTS (SELECT FROM erased_sessions x WHERE x.project_id = $1 AND x.leased_until IS NOT NULL)',
})

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
