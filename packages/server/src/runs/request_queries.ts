import { marksText } from '@annals/kits/changes/mark_changes.js'
import { notErased } from '@annals/kits/lifecycle/table.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { scannedList } from '@annals/kits/lists/scanned.js'
import { prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { byId } from '../log/read/read_queries.js'
import { CHAIN_STORED } from '../proof/chain_queries.js'
import { runFunction } from './lease_queries.js'

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
  SELECT p.proof, p.consumers INTO project FROM projects p WHERE p.id = p_project;
  IF head.is_chained OR project.proof THEN
    PERFORM ${CHAIN_STORED.name}(p_project, p_session, head.last_seq - 1);
  END IF;
  IF cardinality(project.consumers) > 0 THEN${marksText('p_project', '(SELECT unnest(project.consumers) AS consumer)', '(SELECT p_session AS session_id)')};
  END IF;`

export const OPEN_REQUEST = runFunction('open_request', {
  open_max: OPEN_MAX,
  request_json: requestJson('request'),
  is_open: isOpenText('q'),
  append: appendText(
    REQUEST_TYPE,
    'p_event',
    "asked || jsonb_build_object('request_id', p_id) || CASE WHEN p_expires_at IS NULL THEN '{}' ELSE jsonb_build_object('expires_at', p_expires_at) END",
  ),
})

export const RESOLVE_REQUESTS = runFunction('resolve_requests', {
  resolved_at_text: timestampText('request.resolved_at'),
  expires_at_text: timestampText('request.expires_at'),
  by_event_id: byId('e', 'request.session_id', 'p_events[index + 1]'),
  request_json: requestJson('request'),
  append: appendText(
    RESOLUTION_TYPE,
    'p_events[index + 1]',
    "(one - '{id,request_id}'::text[]) || jsonb_build_object('request_id', request.id, 'request_seq', request.seq)",
  ),
})

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

/** The sessions of a user, or below another, by what $6 says. */
const SESSIONS = {
  user: `
    SELECT s.id FROM users u JOIN sessions s ON s.project_id = $1 AND s.user_id = u.id
    WHERE u.project_id = $1 AND u.identifier = $6`,
  parent: `
    WITH RECURSIVE below (id) AS (
      SELECT s.id FROM sessions s WHERE s.project_id = $1 AND s.parent_id = $6::uuid
      UNION
      SELECT s.id FROM below b JOIN sessions s ON s.project_id = $1 AND s.parent_id = b.id
    )
    SELECT b.id FROM below b`,
} as const

/** Whose the rows of a list are: of a session, or of several. */
export type Reach = keyof typeof SESSIONS | 'session_id'

/** Which rows `t` of a list are within a reach, and what the list reads first to know that: the sessions that have such rows. */
export function reachedBy(reach: Reach | undefined, table: string, which: string) {
  if (reach === undefined) return {}
  if (reach === 'session_id') return { only: 't.session_id = $6::uuid' }
  const first = `SELECT ARRAY(
  SELECT s.id FROM (${SESSIONS[reach]}) s
  WHERE EXISTS (SELECT FROM ${table} t WHERE t.project_id = $1 AND t.session_id = s.id AND ${which} OFFSET 0)) AS ids`
  return { only: 't.session_id = ANY ((SELECT f.ids FROM first f)::uuid[])', first }
}

/** Of a state, after the parameters of a page: $5 user identifier or null, and, for some sessions only, $6 whose they are. Items: requests. */
export function listRequests(
  state: keyof typeof IN_STATE,
  direction: 'asc' | 'desc',
  reach: Reach | undefined,
): Statement {
  const table = 'session_requests'
  const which = `t.decision IS ${state === 'resolved' ? 'NOT NULL' : 'NULL'}`
  const list = {
    table,
    which,
    ...reachedBy(reach, table, which),
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
