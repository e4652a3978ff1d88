import { timestampText } from '../lists/resource_json.js'
import { storedFunction } from '../postgres/stored_function.js'

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

/** Answer: the lease as JSON, or `refused`: leased, by whom and for how long; null if there is no such session. */
export const TAKE_LEASE = storedFunction(
  'take_lease',
  'p_project uuid, p_session uuid, p_owner text, p_ttl_ms int, p_progress boolean, p_requires boolean, p_steal boolean',
  `DECLARE${RUN_VARIABLES}
BEGIN${LOCK_RUN}${READ_LEASE}
  IF ends_at > at AND lease.owner <> p_owner AND NOT p_steal THEN
    RETURN json_build_object('refused', 'leased', 'owner', lease.owner, 'expires_at', ${timestampText('ends_at')},
      'left_ms', ceil(extract(epoch FROM ends_at - at) * 1000));
  END IF;${TAKE_RUN}
  RETURN json_build_object('fence', next_fence, 'owner', p_owner, 'expires_at', ${timestampText('ends_at')});
END`,
)

/** Answer: the lease as JSON, or `refused`: fenced, with the fence and the owner that there are, or the lease that stalled. */
export const RENEW_LEASE = storedFunction(
  'renew_lease',
  'p_project uuid, p_session uuid, p_fence bigint, p_ttl_ms int',
  `DECLARE${RUN_VARIABLES}
BEGIN${LOCK_RUN}${READ_LEASE}
  IF head.fence <> p_fence OR lease.owner IS NULL OR (lease.progress AND ends_at <= at) THEN
    RETURN json_build_object('refused', 'fenced', 'fence', head.fence, 'owner', lease.owner);
  END IF;
  IF NOT lease.progress THEN
    ends_at := at + p_ttl_ms * interval '1 millisecond';
    lease.expires_at := ends_at;
  END IF;
  UPDATE session_runs AS r SET ttl_ms = p_ttl_ms, expires_at = lease.expires_at
  WHERE r.project_id = p_project AND r.session_id = p_session;
  RETURN json_build_object('fence', head.fence, 'owner', lease.owner, 'expires_at', ${timestampText('ends_at')});
END`,
)

/** Answer: released, or empty where the lease is somebody else's or nobody's. */
export const RELEASE_LEASE = storedFunction(
  'release_lease',
  'p_project uuid, p_session uuid, p_fence bigint',
  `DECLARE${RUN_VARIABLES}
BEGIN${LOCK_RUN}${READ_LEASE}
  IF head.fence <> p_fence OR lease.owner IS NULL THEN
    RETURN '';
  END IF;
  UPDATE session_runs AS r SET owner = NULL, expires_at = NULL, progress = false, place = head.place + 1
  WHERE r.project_id = p_project AND r.session_id = p_session;
  UPDATE session_heads AS h SET requires_fence = NULL, run_place = head.place + 1
  WHERE h.project_id = p_project AND h.session_id = p_session;
  RETURN 'released';
END`,
)
