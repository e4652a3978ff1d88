import { marksText } from '@annals/kits/changes/mark_changes.js'
import { notErased } from '@annals/kits/lifecycle/table.js'
import { PIECE_BYTES_MAX } from '@annals/kits/limits.js'
import { armsText, FILTER_TERMS_MAX } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { scannedList } from '@annals/kits/lists/scanned.js'
import { prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { type StoredFunction, sqlFile, storedFunction } from '@annals/kits/postgres/stored_function.js'
import { type ReachedBy, reachedRows } from '../access/access_queries.js'
import { byId } from '../log/read/read_queries.js'
import { CHAIN_STORED } from '../proof/chain_queries.js'

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

/** Pending inputs of one session, at most. */
export const PENDING_MAX = 1_000
/** Bytes of inputs that a claim returns with one session; the inbox has the others. */
const CLAIMED_BYTES_MAX = 64 * 1024
/** Sessions with due input that one claim looks at. */
const CLAIM_SCAN_MAX = 10_000
/** It looks at no others where so few sessions have one of the first values of its filter. */
const FEW_MAX = 200
/** How many places later the traces of withdrawn inputs are removed. */
const WITHDRAWN_KEPT = 10_000

const field = (name: string, value: string) => `coalesce(',"${name}":' || to_json(${value})::text, '')`

export function inputJson(i: string): string {
  return `concat('{"id":"', ${i}.id, '","session_id":"', ${i}.session_id, '","place":', ${i}.place, ',"mode":"', ${i}.mode, '","state":"',
    CASE WHEN ${i}.withdrawn_at IS NOT NULL THEN 'withdrawn' WHEN ${i}.expires_at <= clock_timestamp() THEN 'expired' ELSE 'pending' END,
    '","kind":"', ${i}.entry_kind, '"', ${field('type', `${i}.type`)}, ${field('key', `${i}.key`)}, ${field('role', `${i}.role`)}, ${field('format', `${i}.format`)},
    CASE WHEN ${i}.withdrawn_at IS NULL THEN CASE WHEN ${i}.entry_kind = 'event' THEN ',"data":' ELSE ',"blob":' END || ${i}.data::text END,
    ',"meta":' || ${i}.meta::text, ${field('reason', `${i}.reason`)},
    ',"created_at":"', ${timestampText(`${i}.created_at`)}, '","not_before":"', ${timestampText(`${i}.not_before`)}, '"',
    ',"expires_at":"' || ${timestampText(`${i}.expires_at`)} || '"', '}')`
}

/**
 * A page of the inbox in order. Parameters: $1 project, $2 session, $3 place to begin after, $4 how many, $5 which: pending,
 * due or withdrawn. Rows: place, json; `found`: how many there are with the next page's first.
 */
export const LIST_INPUTS = prepared(
  'list_inputs',
  `
SELECT i.place, ${inputJson('i')} AS json, i.found
FROM (
  SELECT i.*, count(*) OVER () AS found, sum(i.bytes) OVER (ORDER BY i.place) - i.bytes AS before FROM (
    SELECT i.* FROM session_inbox i
    WHERE i.project_id = $1 AND i.session_id = $2 AND i.place > $3
      AND CASE WHEN $5::text = 'withdrawn' THEN i.withdrawn_at IS NOT NULL
        ELSE ${isPendingText('i')} AND ($5::text = 'pending' OR i.not_before <= clock_timestamp() OR ${dueAtOnceText('i')}) END
    ORDER BY i.place LIMIT $4
  ) i
) i
WHERE i.before < ${PIECE_BYTES_MAX} ORDER BY i.place`,
)

/** The types of the events by which the log shows requests and their answers; only the service appends them. */
export const REQUEST_TYPE = 'annals.request'
export const RESOLUTION_TYPE = 'annals.resolution'

/** Open requests of one session, at most. */
export const OPEN_MAX = 1_000

export function isOpenText(q: string): string {
  return `${q}.decision IS NULL AND (${q}.expires_at IS NULL OR ${q}.expires_at > clock_timestamp())`
}

/** A request as JSON text, from a row of session_requests. `body` has what was asked, without what is null. */
export function requestJson(q: string): string {
  return `concat('{"id":"', ${q}.id, '","session_id":"', ${q}.session_id, '","seq":', ${q}.seq, ',"state":"',
    CASE WHEN ${q}.decision IS NOT NULL THEN 'resolved' WHEN ${q}.expires_at <= clock_timestamp() THEN 'expired' ELSE 'open' END, '",',
    substr(${q}.body::text, 2, length(${q}.body::text) - 2), ',"call_sha256":"' || ${q}.call_sha256 || '"',
    ',"created_at":"', ${timestampText(`${q}.created_at`)}, '"', ',"expires_at":"' || ${timestampText(`${q}.expires_at`)} || '"',
    ',"decision":"' || ${q}.decision || '"', ',"answer":' || (${q}.answer -> 'value')::text, ',"by":' || to_json(${q}.resolved_by)::text,
    ',"resolved_at":"' || ${timestampText(`${q}.resolved_at`)} || '","resolved_seq":' || ${q}.resolved_seq, '}')`
}

const [, ...STEPS] = sqlFile('runs/run_steps.sql').split('\n-- :')

/** What the module's stored functions name in braces: steps, the last one first, since they name those before, and what these name. */
const NAMED: ReadonlyArray<readonly [name: string, sql: string | number]> = [
  ...STEPS.reverse().map((step) => [/^\w+/.exec(step)![0], step.slice(step.indexOf('\n'))] as const),
  ...Object.entries({
    lease_end: leaseEndText('lease', 'head'),
    check_fence: checkFenceText(false),
    check_fence_or_lease: checkFenceText(true),
    pending: isPendingText('i'),
    due_at_once: dueAtOnceText('i'),
    is_open: isOpenText('q'),
    ends_at: timestampText('ends_at'),
    known_json: inputJson('known'),
    added_json: inputJson('added'),
    input_json: inputJson('i'),
    request_json: requestJson('request'),
    resolved_at: timestampText('request.resolved_at'),
    expires_at: timestampText('request.expires_at'),
    by_id: byId('e', 'p_session', 'p_id'),
    by_event_id: byId('e', 'request.session_id', 'event_id'),
    arms: armsText('w.term'),
    chain_stored: CHAIN_STORED.name,
    mark: marksText(
      'p_project',
      '(SELECT unnest(project.consumers) AS consumer)',
      '(SELECT p_session AS session_id)',
    ),
    request_type: REQUEST_TYPE,
    resolution_type: RESOLUTION_TYPE,
    pending_max: PENDING_MAX,
    open_max: OPEN_MAX,
    withdrawn_kept: WITHDRAWN_KEPT,
    claim_scan_max: CLAIM_SCAN_MAX,
    claimed_bytes_max: CLAIMED_BYTES_MAX,
    filter_terms_max: FILTER_TERMS_MAX,
    few_max: FEW_MAX,
  }),
]

function runFunction(name: string): StoredFunction {
  const sql = sqlFile(`runs/${name}.sql`)
  return storedFunction(
    name,
    NAMED.reduce((text, [named, value]) => text.replaceAll(`{${named}}`, () => `${value}`), sql),
  )
}

export const CHANGE_LEASE = runFunction('change_lease')
export const ADD_INPUT = runFunction('add_input')
export const WITHDRAW_INPUT = runFunction('withdraw_input')
export const CLAIM_WORK = runFunction('claim_work')
export const OPEN_REQUEST = runFunction('open_request')
export const RESOLVE_REQUESTS = runFunction('resolve_requests')

export const READ_REQUEST = prepared(
  'read_request',
  `SELECT q.session_id, ${requestJson('q')} AS json FROM session_requests q
WHERE q.project_id = $1 AND q.id = $2 AND ${notErased('q.session_id')}`,
)

const IN_STATE = {
  open: isOpenText('t'),
  resolved: 'true',
  expired: 't.expires_at <= clock_timestamp()',
}

/** Of a state, after the parameters of a page: $5 user identifier or null, and, for some sessions only, $6 whose they are. Items: requests. */
export function listRequests(
  state: keyof typeof IN_STATE,
  direction: 'asc' | 'desc',
  reach: ReachedBy | undefined,
): Statement {
  const table = 'session_requests'
  const which = `t.decision IS ${state === 'resolved' ? 'NOT NULL' : 'NULL'}`
  const list = {
    table,
    which,
    ...reachedRows(reach, table, which),
    at: 't.created_at',
    id: 't.id',
    shows: `${IN_STATE[state]} AND ${notErased('t.session_id')} AND ($5::text IS NULL OR EXISTS (
      SELECT FROM sessions s JOIN users u ON u.project_id = $1 AND u.id = s.user_id
      WHERE s.project_id = $1 AND s.id = t.session_id AND u.identifier = $5 OFFSET 0))`,
    json: requestJson('t'),
    bytes: 't.bytes',
  }
  return scannedList(`list_requests_${state}${reach ? `_of_${reach}` : ''}`, list, direction)
}

/** Frames that one statement reads, and their bytes at most, the first aside. */
export const FRAMES_MAX = 200
const FRAMES_BYTES_MAX = 1024 * 1024

/** The run of a session that ever had a lease, an input or a request. Parameter: $1 project. */
const runOf = (session_id: string) => `
      SELECT r.owner, r.taken_at, r.wake_at, l.ends_at, k.fence,
        coalesce(r.owner IS NOT NULL AND l.ends_at > clock_timestamp(), false) AS is_leased,
        (SELECT count(*) FROM {session_inbox} i
          WHERE i.project_id = $1 AND i.session_id = k.session_id AND ${isPendingText('i')}) AS pending,
        (SELECT count(*) FROM {session_requests} q
          WHERE q.project_id = $1 AND q.session_id = k.session_id AND ${isOpenText('q')}) AS open_requests
      FROM {session_heads} k LEFT JOIN {session_runs} r ON r.project_id = $1 AND r.session_id = k.session_id
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
export function listRuns(state: keyof typeof STATES, reach: ReachedBy | undefined): Statement {
  const { table, which, since, id, may, holds } = STATES[state]
  // An index begins at one bound of several: each has to leave out what is due later.
  const from = state === 'queued' ? 'least($2::timestamptz, now())' : '$2::timestamptz'
  const list = {
    table,
    which,
    ...reachedRows(reach, table, which),
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
