import { prepared } from '@annals/kits/postgres/statement.js'

/** Brings session_runs and heads in line with rows of inbox and requests that an import has stored. Parameters: $1 project. */
export const RESTORE_RUNS = {
  runs: prepared(
    'restore_runs',
    `
INSERT INTO session_runs AS r (project_id, session_id, ttl_ms, progress, place, wake_at)
SELECT i.project_id, i.session_id, 0, false, 0, min(i.not_before) FROM session_inbox i
WHERE i.project_id = $1 AND i.withdrawn_at IS NULL GROUP BY i.project_id, i.session_id
ON CONFLICT (project_id, session_id) DO UPDATE SET wake_at = excluded.wake_at`,
  ),
  places: prepared(
    'restore_run_places',
    `
UPDATE session_heads AS h SET run_place = x.place
FROM (
  SELECT p.session_id, max(p.place) AS place FROM (
    SELECT i.session_id, i.place FROM session_inbox i WHERE i.project_id = $1
    UNION ALL SELECT q.session_id, q.place FROM session_requests q WHERE q.project_id = $1
  ) p GROUP BY p.session_id
) x
WHERE h.project_id = $1 AND h.session_id = x.session_id AND coalesce(h.run_place, 0) < x.place`,
  ),
} as const
