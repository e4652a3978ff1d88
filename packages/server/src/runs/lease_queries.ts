import { timestampText } from '@annals/kits/lists/resource_json.js'
import { fill, type StoredFunction, sqlFile, storedFunction } from '@annals/kits/postgres/stored_function.js'

/**
 * Leases, and steps of the module's stored functions: see migrations/0035_runs.sql. Whoever changes what belongs to a
 * session's run locks the session's head first, and takes the time after that, so that a wait for the lock shortens no
 * lease.
 */

/** When the lease of a row of session_runs ends. With `progress`, each append under its fence prolongs it. */
export function leaseEndText(run: string, head: string): string {
  return `CASE WHEN ${run}.progress THEN greatest(${run}.expires_at, ${head}.fenced_at + ${run}.ttl_ms * interval '1 millisecond') ELSE ${run}.expires_at END`
}

export function isPendingText(i: string): string {
  return `${i}.withdrawn_at IS NULL AND (${i}.expires_at IS NULL OR ${i}.expires_at > clock_timestamp())`
}

/** Whether it was due when it came: it still is where the clock was set back since. */
export function dueAtOnceText(i: string): string {
  return `${i}.not_before <= ${i}.created_at`
}

/** Refuses a write under another fence, or, if \`requires\`, one without the fence that the lease asks for. */
export function checkFenceText(requires: boolean): string {
  return `
  IF p_fence <> head.fence${requires ? ' OR (p_fence IS NULL AND head.requires_fence)' : ''} THEN
    RETURN json_build_object('refused', 'fenced', 'fence', head.fence);
  END IF;`
}

const lockText = (how: string) => `
  SELECT h.last_seq, h.updated_at, coalesce(h.fence, 0) AS fence, h.fenced_at, coalesce(h.requires_fence, false) AS requires_fence,
    coalesce(h.run_place, 0) AS place, h.proof IS NOT NULL AS is_chained
  INTO head FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR NO KEY UPDATE${how};`

/** By the name in braces. */
const STEPS = {
  run_variables: `
  head record;
  lease record;
  project record;
  at timestamptz;
  ends_at timestamptz;
  event_data jsonb;
  event_bytes int;
  fenced boolean := false;`,
  lock_head: lockText(''),
  lock_run: `${lockText('')}
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  at := clock_timestamp();`,
  /** The same within a loop over sessions: skips one that somebody else holds, or that is gone. */
  try_run: `${lockText(' SKIP LOCKED')}
    IF NOT FOUND THEN
      CONTINUE WHEN NOT EXISTS (SELECT FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session);
      skipped := skipped + 1;
      EXIT WHEN skipped >= 100;
      CONTINUE;
    END IF;
    at := clock_timestamp();`,
  check_fence: checkFenceText(false),
  check_fence_or_lease: checkFenceText(true),
  /** Reads the lease into `lease`, and its end into `ends_at`. */
  read_lease: `
  SELECT r.owner, r.ttl_ms, r.progress, r.expires_at, r.wake_at INTO lease
  FROM session_runs r WHERE r.project_id = p_project AND r.session_id = p_session;
  ends_at := ${leaseEndText('lease', 'head')};`,
  /** Grants the lease to `p_owner`, with the next fence. */
  take_run: `
  head.fence := greatest(head.fence + 1, floor(extract(epoch FROM at) * 1000)::bigint);
  lease.owner := p_owner;
  ends_at := at + p_ttl_ms * interval '1 millisecond';
  INSERT INTO session_runs AS r (project_id, session_id, owner, ttl_ms, progress, taken_at, expires_at, place)
  VALUES (p_project, p_session, p_owner, p_ttl_ms, p_progress, at, ends_at, head.place + 1)
  ON CONFLICT (project_id, session_id) DO UPDATE SET owner = excluded.owner, ttl_ms = excluded.ttl_ms,
    progress = excluded.progress, taken_at = excluded.taken_at, expires_at = excluded.expires_at, place = excluded.place;
  UPDATE session_heads AS h SET fence = head.fence, fenced_at = NULL, requires_fence = nullif(p_requires, false), run_place = head.place + 1
  WHERE h.project_id = p_project AND h.session_id = p_session;`,
  ends_at_text: timestampText('ends_at'),
  pending: isPendingText('i'),
  due_at_once: dueAtOnceText('i'),
  /** Sets when the session is to be looked at next, after a change of what is pending. */
  wake: `
  SELECT min(CASE WHEN ${dueAtOnceText('i')} THEN least(i.not_before, at) ELSE i.not_before END) INTO ends_at FROM session_inbox i
  WHERE i.project_id = p_project AND i.session_id = p_session AND ${isPendingText('i')};
  UPDATE session_runs AS r SET wake_at = ends_at WHERE r.project_id = p_project AND r.session_id = p_session;`,
}

/** A stored function of the module, which names some of these steps, and what else it names in braces. */
export function runFunction(name: string, values: Record<string, string | number> = {}): StoredFunction {
  const sql = sqlFile(`runs/${name}.sql`)
  const steps = Object.entries(STEPS).filter(([step]) => sql.includes(`{${step}}`))
  return storedFunction(name, fill(sql, Object.fromEntries(steps)), values)
}

export const CHANGE_LEASE = runFunction('change_lease')
