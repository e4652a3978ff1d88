import { timestampText } from '../lists/resource_json.js'
import { storedFunctionIn } from '../postgres/stored_function.js'

/**
 * Leases: see migrations/0035_runs.sql. Whoever changes what belongs to a session's run locks the session's head first,
 * and takes the time after that, so that a wait for the lock shortens no lease.
 */

/** When the lease of a row of session_runs ends. With `progress`, each append under its fence prolongs it. */
export function leaseEndText(run: string, head: string): string {
  return `CASE WHEN ${run}.progress THEN greatest(${run}.expires_at, ${head}.fenced_at + ${run}.ttl_ms * interval '1 millisecond') ELSE ${run}.expires_at END`
}

export const RUN_VARIABLES = `
  head record;
  lease record;
  at timestamptz;
  ends_at timestamptz;
  next_fence bigint;`

const headText = (lock: string) => `
  SELECT h.last_seq, h.updated_at, coalesce(h.fence, 0) AS fence, h.fenced_at, coalesce(h.requires_fence, false) AS requires_fence,
    coalesce(h.run_place, 0) AS place
  INTO head FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR NO KEY UPDATE${lock};`

/** Locks the head of `p_session`; the function returns null without one. */
export const LOCK_RUN = `${headText('')}
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  at := clock_timestamp();`

/** The same within a loop over sessions: skips one that somebody else holds. */
export const TRY_RUN = `${headText(' SKIP LOCKED')}
    IF NOT FOUND THEN
      skipped := skipped + 1;
      EXIT WHEN skipped >= 100;
      CONTINUE;
    END IF;
    at := clock_timestamp();`

/** Reads the lease into `lease`, and its end into `ends_at`. */
export const READ_LEASE = `
  SELECT r.owner, r.ttl_ms, r.progress, r.expires_at, r.wake_at INTO lease
  FROM session_runs r WHERE r.project_id = p_project AND r.session_id = p_session;
  ends_at := ${leaseEndText('lease', 'head')};`

/** Refuses a write under another fence, or, if \`requires\`, one without the fence that the lease asks for. */
export function checkFenceText(requires: boolean): string {
  return `
  IF p_fence <> head.fence${requires ? ' OR (p_fence IS NULL AND head.requires_fence)' : ''} THEN
    RETURN json_build_object('refused', 'fenced', 'fence', head.fence);
  END IF;`
}

/** Gives the lease to `p_owner`, with the next fence. */
export const TAKE_RUN = `
  next_fence := greatest(head.fence + 1, floor(extract(epoch FROM at) * 1000)::bigint);
  ends_at := at + p_ttl_ms * interval '1 millisecond';
  INSERT INTO session_runs AS r (project_id, session_id, owner, ttl_ms, progress, taken_at, expires_at, place, open_requests)
  VALUES (p_project, p_session, p_owner, p_ttl_ms, p_progress, at, ends_at, head.place + 1, 0)
  ON CONFLICT (project_id, session_id) DO UPDATE SET owner = excluded.owner, ttl_ms = excluded.ttl_ms,
    progress = excluded.progress, taken_at = excluded.taken_at, expires_at = excluded.expires_at, place = excluded.place;
  UPDATE session_heads AS h SET fence = next_fence, fenced_at = NULL, requires_fence = nullif(p_requires, false), run_place = head.place + 1
  WHERE h.project_id = p_project AND h.session_id = p_session;`

export const TAKE_LEASE = storedFunctionIn('runs/take_lease.sql', {
  run_variables: RUN_VARIABLES,
  lock_run: LOCK_RUN,
  read_lease: READ_LEASE,
  ends_at_text: timestampText('ends_at'),
  take_run: TAKE_RUN,
})

export const RENEW_LEASE = storedFunctionIn('runs/renew_lease.sql', {
  run_variables: RUN_VARIABLES,
  lock_run: LOCK_RUN,
  read_lease: READ_LEASE,
  ends_at_text: timestampText('ends_at'),
})

export const RELEASE_LEASE = storedFunctionIn('runs/release_lease.sql', {
  run_variables: RUN_VARIABLES,
  lock_run: LOCK_RUN,
  read_lease: READ_LEASE,
})
