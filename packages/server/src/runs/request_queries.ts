import { markChanges } from '../changes/mark_changes.js'
import { PIECE_BYTES_MAX } from '../limits.js'
import { timestampText } from '../lists/resource_json.js'
import { planned, prepared, type Statement } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'
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

/**
 * Opens a request and appends its event. `p_request`: `id`, `event_id`, `body`, `call_sha256`, `expires_at`. Answer:
 * `{ state, request }`, where state is new or known, or `refused`: fenced, differs, full; null if there is no such session.
 */
export const OPEN_REQUEST = storedFunction(
  'open_request',
  'p_project uuid, p_session uuid, p_fence bigint, p_request jsonb, p_open_max int',
  `DECLARE${EVENT_VARIABLES}
  request record;
  own_id uuid := (p_request ->> 'id')::uuid;
BEGIN${LOCK_RUN}
  SELECT q.* INTO request FROM session_requests q WHERE q.project_id = p_project AND q.id = own_id;
  IF FOUND THEN
    IF request.session_id <> p_session OR request.body <> p_request -> 'body' THEN
      RETURN '{"refused":"differs"}';
    END IF;
    RETURN concat('{"state":"known","request":', ${requestJson('request')}, '}');
  END IF;${checkFenceText(true)}
  fenced := p_fence IS NOT NULL;
  IF (SELECT count(*) FROM (SELECT FROM session_requests q WHERE q.project_id = p_project AND q.session_id = p_session AND ${IS_OPEN}
      ORDER BY q.created_at DESC LIMIT p_open_max) q) = p_open_max THEN
    RETURN '{"refused":"full"}';
  END IF;${appendText(
    REQUEST_TYPE,
    "(p_request ->> 'event_id')::uuid",
    "(p_request -> 'body') || jsonb_build_object('request_id', own_id) || CASE WHEN p_request -> 'expires_at' <> 'null' THEN jsonb_build_object('expires_at', p_request -> 'expires_at') ELSE '{}' END",
  )}
  INSERT INTO session_requests AS q (project_id, id, session_id, place, seq, bytes, body, call_sha256, created_at, expires_at)
  VALUES (p_project, own_id, p_session, head.place + 1, head.last_seq, event_bytes, p_request -> 'body', p_request ->> 'call_sha256', at,
    (p_request ->> 'expires_at')::timestamptz)
  RETURNING q.* INTO request;
  INSERT INTO session_runs AS r (project_id, session_id, ttl_ms, progress, place, open_requests, waiting_since)
  VALUES (p_project, p_session, 0, false, 0, 1, at)
  ON CONFLICT (project_id, session_id) DO UPDATE SET open_requests = r.open_requests + 1, waiting_since = excluded.waiting_since;
  RETURN concat('{"state":"new","request":', ${requestJson('request')}, '}');
END`,
)

/**
 * Resolves requests, all or none, and appends an event for each. `p_resolutions`: a JSON array of `id`, `event_id`,
 * `decision`, `answer`, `by`, `call_sha256`. Answer: `sessions` and `items`, which are JSON as text; or `refused`, the `index` and what is there:
 * missing, resolved, expired, kind (the decision is none for it), call (another call was asked for). The heads are locked in the order of
 * their ids, as by appends.
 */
export const RESOLVE_REQUESTS = storedFunction(
  'resolve_requests',
  'p_project uuid, p_resolutions jsonb',
  `DECLARE${EVENT_VARIABLES}
  one record;
  request record;
  p_session uuid;
  sessions uuid[] := '{}';
  items text[] := '{}';
BEGIN
  FOR p_session IN
    SELECT h.session_id FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (ARRAY(
      SELECT q.session_id FROM session_requests q
      WHERE q.project_id = p_project AND q.id = ANY (ARRAY(SELECT (x.value ->> 'id')::uuid FROM jsonb_array_elements(p_resolutions) x (value)))))
    ORDER BY h.session_id FOR NO KEY UPDATE
  LOOP
    sessions := sessions || p_session;
  END LOOP;
  at := clock_timestamp();
  FOR one IN SELECT x.value, x.nth - 1 AS index, x.value ->> 'decision' AS decision
    FROM jsonb_array_elements(p_resolutions) WITH ORDINALITY x (value, nth) ORDER BY x.nth
  LOOP
    SELECT q.* INTO request FROM session_requests q
    WHERE q.project_id = p_project AND q.id = (one.value ->> 'id')::uuid AND q.session_id = ANY (sessions);
    IF NOT FOUND THEN
      RETURN json_build_object('refused', 'missing', 'index', one.index);
    ELSIF request.decision IS NOT NULL THEN
      RETURN json_build_object('refused', 'resolved', 'index', one.index, 'decision', request.decision, 'by', request.resolved_by,
        'at', ${timestampText('request.resolved_at')});
    ELSIF request.expires_at <= at THEN
      RETURN json_build_object('refused', 'expired', 'index', one.index, 'at', ${timestampText('request.expires_at')});
    ELSIF (request.body ->> 'kind' = 'question') <> (one.decision = 'answer') THEN
      RETURN json_build_object('refused', 'kind', 'index', one.index, 'kind', request.body ->> 'kind');
    ELSIF request.call_sha256 IS DISTINCT FROM one.value ->> 'call_sha256' AND (one.decision = 'approve' OR one.value ->> 'call_sha256' IS NOT NULL) THEN
      RETURN json_build_object('refused', 'call', 'index', one.index, 'call_sha256', request.call_sha256);
    END IF;
  END LOOP;
  FOR one IN SELECT x.value FROM jsonb_array_elements(p_resolutions) WITH ORDINALITY x (value, nth) ORDER BY x.nth LOOP
    SELECT q.* INTO request FROM session_requests q WHERE q.project_id = p_project AND q.id = (one.value ->> 'id')::uuid;
    p_session := request.session_id;
    SELECT h.last_seq, h.updated_at, coalesce(h.run_place, 0) AS place INTO head
    FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session;${appendText(
      RESOLUTION_TYPE,
      "(one.value ->> 'event_id')::uuid",
      "(one.value - 'event_id' - 'id') || jsonb_build_object('request_id', request.id, 'request_seq', request.seq)",
    )}
    UPDATE session_requests AS q SET place = head.place + 1, decision = one.value ->> 'decision', answer = CASE WHEN one.value ? 'answer' THEN jsonb_build_object('value', one.value -> 'answer') END,
      resolved_by = one.value ->> 'by', resolved_at = at, resolved_seq = head.last_seq, bytes = q.bytes + event_bytes
    WHERE q.project_id = p_project AND q.id = request.id;
    UPDATE session_runs AS r SET open_requests = greatest(r.open_requests - 1, 0) WHERE r.project_id = p_project AND r.session_id = p_session;
    SELECT q.* INTO request FROM session_requests q WHERE q.project_id = p_project AND q.id = request.id;
    items := items || ${requestJson('request')};
  END LOOP;
  RETURN json_build_object('sessions', sessions, 'items', items);
END`,
)

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
