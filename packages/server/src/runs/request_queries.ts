import { markChanges } from '../changes/mark_changes.js'
import { PIECE_BYTES_MAX } from '../limits.js'
import { timestampText } from '../lists/resource_json.js'
import { planned, prepared, type Statement } from '../postgres/statement.js'
import { storedFunctionIn } from '../postgres/stored_function.js'
import { CHAIN_STORED } from '../proof/chain_queries.js'
import { checkFenceText, LOCK_RUN, RUN_VARIABLES } from './lease_queries.js'

/** The types of the events by which the log shows requests and their answers; only the service appends them. */
export const REQUEST_TYPE = 'annals.request'
export const RESOLUTION_TYPE = 'annals.resolution'

/** Rows that one page looks at: with a rare filter a page may be shorter than asked for. `shown + 0`: PostgreSQL 15 fails where a window ends by its count and has a subquery. */
const SCANNED_MAX = 1_000

/** SQL: how long a request `q` is open; false where that is over. */
const IS_OPEN = '(q.decision IS NULL AND (q.expires_at IS NULL OR q.expires_at > clock_timestamp()))'

/** A request as JSON text, from a row of session_requests. `body` has what was asked, without what is null. */
export function requestJson(q: string): string {
  return `concat('{"id":"', ${q}.id, '","session_id":"', ${q}.session_id, '","seq":', ${q}.seq, ',"state":"',
    CASE WHEN ${q}.decision IS NOT NULL THEN 'resolved' WHEN ${q}.expires_at <= clock_timestamp() THEN 'expired' ELSE 'open' END, '",',
    substr(${q}.body::text, 2, length(${q}.body::text) - 2), ',"call_sha256":"' || ${q}.call_sha256 || '"',
    ',"created_at":"', ${timestampText(`${q}.created_at`)}, '"', ',"expires_at":"' || ${timestampText(`${q}.expires_at`)} || '"',
    ',"decision":"' || ${q}.decision || '"', ',"answer":' || (${q}.answer -> 'value')::text, ',"by":' || to_json(${q}.resolved_by)::text,
    ',"resolved_at":"' || ${timestampText(`${q}.resolved_at`)} || '","resolved_seq":' || ${q}.resolved_seq, '}')`
}

/** Appends one event to the locked session \`p_session\`, whose head is in \`head\`. */
const appendText = (type: string, id: string, data: string) => `
  event_data := ${data};
  head.last_seq := head.last_seq + 1;
  at := greatest(at, head.updated_at);
  event_bytes := octet_length(event_data::text);
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
  VALUES (p_project, p_session, head.last_seq, at, at, ${id}, event_bytes, 0, 'event', '${type}', event_data);
  UPDATE session_heads AS h SET last_seq = head.last_seq, updated_at = at, bytes = h.bytes + event_bytes, counted = h.counted + 1,
    run_place = head.place + 1, fenced_at = CASE WHEN fenced THEN at ELSE h.fenced_at END
  WHERE h.project_id = p_project AND h.session_id = p_session;
  PERFORM ${CHAIN_STORED.name}(p_project, p_session, head.last_seq - 1);${markChanges('p_project', '(SELECT p_session AS session_id)')};`

const EVENT_VARIABLES = `${RUN_VARIABLES}
  event_data jsonb;
  event_bytes int;
  fenced boolean := false;`

export const OPEN_REQUEST = storedFunctionIn('runs/open_request.sql', {
  event_variables: EVENT_VARIABLES,
  lock_run: LOCK_RUN,
  request_json: requestJson('request'),
  check_fence: checkFenceText(true),
  is_open: IS_OPEN,
  append: appendText(
    REQUEST_TYPE,
    "(p_request ->> 'event_id')::uuid",
    "(p_request -> 'body') || jsonb_build_object('request_id', own_id) || CASE WHEN p_request -> 'expires_at' <> 'null' THEN jsonb_build_object('expires_at', p_request -> 'expires_at') ELSE '{}' END",
  ),
})

export const RESOLVE_REQUESTS = storedFunctionIn('runs/resolve_requests.sql', {
  event_variables: EVENT_VARIABLES,
  resolved_at_text: timestampText('request.resolved_at'),
  expires_at_text: timestampText('request.expires_at'),
  append: appendText(
    RESOLUTION_TYPE,
    "(one.value ->> 'event_id')::uuid",
    "(one.value - 'event_id' - 'id') || jsonb_build_object('request_id', request.id, 'request_seq', request.seq)",
  ),
  request_json: requestJson('request'),
})

/** Parameters: $1 project, $2 request. */
export const FIND_SESSION_OF_REQUEST = prepared(
  'find_session_of_request',
  'SELECT q.session_id FROM session_requests q WHERE q.project_id = $1 AND q.id = $2',
)

export const READ_REQUEST = prepared(
  'read_request',
  `SELECT ${requestJson('q')} AS json FROM session_requests q WHERE q.project_id = $1 AND q.id = $2`,
)

const STATES = {
  open: 'q.decision IS NULL AND (q.expires_at IS NULL OR q.expires_at > now())',
  resolved: 'q.decision IS NOT NULL',
  expired: 'q.decision IS NULL AND q.expires_at <= now()',
} as const

export type RequestState = keyof typeof STATES

const OF_SESSIONS = {
  all: '$6::uuid IS NULL',
  one: 'q.session_id = $6::uuid',
  some: 'q.session_id = ANY ($6::uuid[])',
} as const

/**
 * A page of a state. It looks at ${SCANNED_MAX} rows, so a rare filter makes short pages, and none that takes long. Parameters: $1
 * project, $2 created_at and $3 id to begin after, $4 how many, $5 user identifier or null, and $6 the session of \`one\`, or the sessions of \`some\`. Rows:
 * json (null: only looked at), created_at, id. \`scanned\`: how many there are, the next page's first among them.
 */
function listOf(state: RequestState, name: 'asc' | 'desc', of: keyof typeof OF_SESSIONS): Statement {
  const after = name === 'asc' ? '>' : '<'
  const within = state === 'resolved' ? STATES.resolved : 'q.decision IS NULL'
  return (of === 'some' ? planned : prepared)(
    `list_requests_${state}_${name}_of_${of}`,
    `
SELECT CASE WHEN q.is_shown THEN ${requestJson('q')} END AS json, ${timestampText('q.created_at')} AS created_at, q.id, q.is_shown
FROM (
  SELECT q.*, sum(CASE WHEN q.is_shown THEN q.bytes ELSE 0 END) OVER (ORDER BY q.created_at ${name}, q.id ${name}) - q.bytes AS before,
    count(*) FILTER (WHERE q.is_shown) OVER (ORDER BY q.created_at ${name}, q.id ${name}) AS shown
  FROM (
    SELECT q.*, ${STATES[state]} AND ($5::text IS NULL OR EXISTS (
      SELECT FROM sessions s JOIN users u ON u.project_id = $1 AND u.id = s.user_id
      WHERE s.project_id = $1 AND s.id = q.session_id AND u.identifier = $5)) AS is_shown
    FROM (
      SELECT q.* FROM session_requests q
      WHERE q.project_id = $1 AND (q.created_at, q.id) ${after} ($2::timestamptz, $3::uuid) AND ${within}
        AND ${OF_SESSIONS[of]}
      ORDER BY q.created_at ${name}, q.id ${name} LIMIT ${SCANNED_MAX}
    ) q
  ) q
) q
WHERE q.before < ${PIECE_BYTES_MAX} AND q.shown + 0 <= $4::int
ORDER BY q.created_at ${name}, q.id ${name}`,
  )
}

type Lists = Record<`${RequestState}_${'asc' | 'desc'}_of_${keyof typeof OF_SESSIONS}`, Statement>

export const LIST_REQUESTS = Object.fromEntries(
  (Object.keys(STATES) as RequestState[]).flatMap((state) =>
    (['asc', 'desc'] as const).flatMap((order) =>
      (['all', 'one', 'some'] as const).map((of) => [`${state}_${order}_of_${of}`, listOf(state, order, of)]),
    ),
  ),
) as Lists
export const REQUESTS_SCANNED_MAX = SCANNED_MAX
