import { timestampText } from '@annals/kits/lists/resource_json.js'
import { scannedList } from '@annals/kits/lists/scanned.js'
import { prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { inputJson } from './inbox_queries.js'
import { isPendingText, leaseEndText } from './lease_queries.js'
import { isOpenText, type Reach, reachedBy, requestJson } from './request_queries.js'

/** Frames that one statement reads, and their bytes at most, the first aside. */
export const FRAMES_MAX = 200
const FRAMES_BYTES_MAX = 1024 * 1024

/** The run of a session that ever had a lease, an input or a request. Parameter: $1 project. */
const runOf = (session_id: string) => `
      SELECT r.owner, r.taken_at, r.wake_at, l.ends_at, k.fence,
        coalesce(r.owner IS NOT NULL AND l.ends_at > clock_timestamp(), false) AS is_leased,
        (SELECT count(*) FROM session_inbox i
          WHERE i.project_id = $1 AND i.session_id = k.session_id AND ${isPendingText('i')}) AS pending,
        (SELECT count(*) FROM session_requests q
          WHERE q.project_id = $1 AND q.session_id = k.session_id AND ${isOpenText('q')}) AS open_requests
      FROM session_heads k LEFT JOIN session_runs r ON r.project_id = $1 AND r.session_id = k.session_id
        CROSS JOIN LATERAL (SELECT ${leaseEndText('r', 'k')} AS ends_at) l
      WHERE k.project_id = $1 AND k.session_id = ${session_id} AND k.run_place IS NOT NULL`

/** A row `r` of this as JSON text. */
const RUN_JSON = `concat('{"state":"',
      CASE WHEN r.is_leased THEN 'running' WHEN r.open_requests > 0 THEN 'waiting' WHEN r.wake_at <= clock_timestamp() AND r.pending > 0 THEN 'queued' ELSE 'idle' END,
      '"', CASE WHEN r.is_leased THEN concat(',"owner":', to_json(r.owner)::text, ',"expires_at":"', ${timestampText('r.ends_at')}, '","taken_at":"', ${timestampText('r.taken_at')}, '"') END,
      ',"fence":', coalesce(r.fence, 0), ',"pending":', r.pending, ',"open_requests":', r.open_requests, '}')`

/**
 * The run of a session as JSON text: `state` is running with a valid lease, else waiting with an open request, else queued
 * with due input, else idle. Null if it never had any of these. Parameter: $1 project.
 */
export function runJson(session_id: string): string {
  return `(SELECT ${RUN_JSON} FROM (${runOf(session_id)}) r)`
}

const STATES = {
  running: {
    table: 'session_runs',
    which: 't.owner IS NOT NULL',
    since: 't.taken_at',
    id: 't.session_id',
    may: '(t.progress OR t.expires_at > now())',
    holds: 'r.is_leased',
  },
  // A session stands where its last open request does.
  waiting: {
    table: 'session_requests',
    which: 't.decision IS NULL',
    since: 't.created_at',
    id: 't.id',
    may: `${isOpenText('t')} AND NOT EXISTS (
      SELECT FROM session_requests q WHERE q.project_id = $1 AND q.session_id = t.session_id AND ${isOpenText('q')}
        AND (q.created_at, q.id) > (t.created_at, t.id) OFFSET 0)`,
    holds: 'true',
  },
  queued: {
    table: 'session_runs',
    which: 't.wake_at IS NOT NULL AND greatest(t.wake_at, t.expires_at) <= now()',
    since: 'greatest(t.wake_at, t.expires_at)',
    id: 't.session_id',
    may: 'true',
    holds: 'NOT r.is_leased AND r.pending > 0',
  },
} as const

/**
 * Sessions in a state, the latest first. After the parameters of a page: $5 what configs contain, or null, and, for some
 * sessions only, $6 whose they are. Items: session_id, since, run.
 */
export function listRuns(state: keyof typeof STATES, reach: Reach | undefined): Statement {
  const { table, which, since, id, may, holds } = STATES[state]
  // An index begins at one bound of several: each has to leave out what is due later.
  const from = state === 'queued' ? 'least($2::timestamptz, now())' : '$2::timestamptz'
  const list = {
    table,
    which,
    ...reachedBy(reach, table, which),
    at: since,
    from,
    id,
    shows: `${may} AND ($5::jsonb IS NULL OR EXISTS (
      SELECT FROM sessions s WHERE s.project_id = $1 AND s.id = t.session_id AND s.configs @> $5::jsonb OFFSET 0))`,
    joined: `SELECT ${RUN_JSON} AS run FROM (${runOf('t.session_id')}) r WHERE ${holds}`,
    json: `concat('{"session_id":"', t.session_id, '","since":"', ${timestampText('t.listed_at')}, '","run":', t.run, '}')`,
  }
  return scannedList(`list_runs_${state}${reach ? `_of_${reach}` : ''}`, list, 'desc')
}

/**
 * Changes of a session's run after a place, in order: inputs and requests as they are now, and the lease. Parameters:
 * $1 project, $2 session, $3 place. Rows: place, event, json.
 */
export const READ_FRAMES = prepared(
  'read_run_frames',
  `
SELECT f.place, f.event, f.json FROM (
  SELECT f.*, sum(length(f.json)) OVER (ORDER BY f.place) - length(f.json) AS before FROM (
    (SELECT i.place, 'input' AS event, ${inputJson('i')} AS json FROM session_inbox i
      WHERE i.project_id = $1 AND i.session_id = $2 AND i.place > $3 ORDER BY i.place LIMIT ${FRAMES_MAX})
    UNION ALL
    (SELECT q.place, 'request', ${requestJson('q')} FROM session_requests q
      WHERE q.project_id = $1 AND q.session_id = $2 AND q.place > $3 ORDER BY q.place LIMIT ${FRAMES_MAX})
    UNION ALL
    (SELECT r.place, 'lease', concat('{"state":"', CASE WHEN r.owner IS NULL THEN 'released' ELSE 'taken' END, '","fence":', coalesce(h.fence, 0),
        ',"owner":' || to_json(r.owner)::text, ',"expires_at":"' || ${timestampText('r.expires_at')} || '"', '}')
      FROM session_runs r JOIN session_heads h ON h.project_id = $1 AND h.session_id = $2
      WHERE r.project_id = $1 AND r.session_id = $2 AND r.place > $3)
    ORDER BY place LIMIT ${FRAMES_MAX}
  ) f
) f
WHERE f.before < ${FRAMES_BYTES_MAX} ORDER BY f.place`,
)

/** Where a session's run stands, for its tails: its last place, and in how many ms its lease ends (null: there is none). Parameters: $1 project, $2 session. */
export const READ_PLACE = prepared(
  'read_run_place',
  `
SELECT coalesce(h.run_place, 0) AS place, coalesce(h.fence, 0) AS fence,
  (SELECT ceil(extract(epoch FROM ${leaseEndText('r', 'h')} - clock_timestamp()) * 1000) FROM session_runs r
    WHERE r.project_id = $1 AND r.session_id = $2 AND r.owner IS NOT NULL) AS left_ms
FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2`,
)
