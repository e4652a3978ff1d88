import { PIECE_BYTES_MAX } from '../limits.js'
import { timestampText } from '../lists/resource_json.js'
import { prepared } from '../postgres/statement.js'
import { storedFunction } from '../postgres/stored_function.js'
import { checkFenceText, LOCK_RUN, READ_LEASE, RUN_VARIABLES, TAKE_RUN, TRY_RUN } from './lease_queries.js'

/** Bytes of inputs that a claim returns with one session; the inbox has the others. */
const CLAIMED_BYTES_MAX = 64 * 1024
/** Sessions with due input that one claim looks at. */
const CLAIM_SCAN_MAX = 10_000
/** How many places later the traces of withdrawn inputs are removed. */
const WITHDRAWN_KEPT = 10_000

const field = (name: string, value: string) => `coalesce(',"${name}":' || to_json(${value})::text, '')`

/** An input as JSON text, from a row of session_inbox. */
export function inputJson(i: string): string {
  return `concat('{"id":"', ${i}.id, '","session_id":"', ${i}.session_id, '","place":', ${i}.place, ',"mode":"', ${i}.mode, '","state":"',
    CASE WHEN ${i}.withdrawn_at IS NOT NULL THEN 'withdrawn' WHEN ${i}.expires_at <= clock_timestamp() THEN 'expired' ELSE 'pending' END,
    '","kind":"', ${i}.entry_kind, '"', ${field('type', `${i}.type`)}, ${field('key', `${i}.key`)}, ${field('role', `${i}.role`)}, ${field('format', `${i}.format`)},
    CASE WHEN ${i}.withdrawn_at IS NULL THEN CASE WHEN ${i}.entry_kind = 'event' THEN ',"data":' ELSE ',"blob":' END || ${i}.data::text END,
    ',"meta":' || ${i}.meta::text, ${field('reason', `${i}.reason`)},
    ',"created_at":"', ${timestampText(`${i}.created_at`)}, '","not_before":"', ${timestampText(`${i}.not_before`)}, '"',
    ',"expires_at":"' || ${timestampText(`${i}.expires_at`)} || '"', '}')`
}

export function isPendingText(i: string): string {
  return `${i}.withdrawn_at IS NULL AND (${i}.expires_at IS NULL OR ${i}.expires_at > clock_timestamp())`
}
const PENDING = isPendingText('i')

/** Whether it was due when it came: it still is where the clock was set back since. */
export function dueAtOnceText(i: string): string {
  return `${i}.not_before <= ${i}.created_at`
}

/** Sets when the session is to be looked at next, after a change of what is pending. */
const WAKE = `
  SELECT min(CASE WHEN ${dueAtOnceText('i')} THEN least(i.not_before, at) ELSE i.not_before END) INTO ends_at FROM session_inbox i
  WHERE i.project_id = p_project AND i.session_id = p_session AND ${PENDING};
  UPDATE session_runs AS r SET wake_at = ends_at WHERE r.project_id = p_project AND r.session_id = p_session;`

/**
 * Adds an input, unless its id is known. Answer: `{ state, input }`, where state is new with the `hooks` that are to hear
 * of it, known, or applied with its `seq`; or `refused`: fenced, differs, full, blob; null if there is no such session. The
 * session changed, but its log did not. The session refers to the blobs of its input, under seq 0, for as long as it is there.
 */
export const ADD_INPUT = storedFunction(
  'add_input',
  'p_project uuid, p_session uuid, p_fence bigint, p_input jsonb, p_pending_max int',
  `DECLARE${RUN_VARIABLES}
  known record;
  added record;
  hooks uuid[];
  missing text;
  own_id uuid := (p_input ->> 'id')::uuid;
BEGIN${LOCK_RUN}${checkFenceText(false)}
  SELECT i.* INTO known FROM session_inbox i WHERE i.project_id = p_project AND i.session_id = p_session AND i.id = own_id;
  IF FOUND THEN
    IF known.withdrawn_at IS NULL AND (known.data <> p_input -> 'data' OR known.mode <> p_input ->> 'mode'
        OR known.type IS DISTINCT FROM p_input ->> 'type' OR known.entry_kind <> p_input ->> 'kind') THEN
      RETURN '{"refused":"differs"}';
    END IF;
    RETURN concat('{"state":"known","input":', ${inputJson('known')}, '}');
  END IF;
  SELECT e.seq, e.kind, e.data INTO known FROM entries e WHERE e.project_id = p_project AND e.session_id = p_session AND e.id = own_id;
  IF FOUND THEN
    IF known.kind <> p_input ->> 'kind' OR known.data <> p_input -> 'data' THEN
      RETURN '{"refused":"differs"}';
    END IF;
    RETURN concat('{"state":"applied","seq":', known.seq, '}');
  END IF;
  IF (SELECT count(*) FROM (SELECT FROM session_inbox i WHERE i.project_id = p_project AND i.session_id = p_session AND ${PENDING} LIMIT p_pending_max) i) = p_pending_max THEN
    RETURN '{"refused":"full"}';
  END IF;
  IF p_input -> 'blobs' <> '[]' THEN
    PERFORM FROM blobs b
    WHERE b.project_id = p_project AND b.sha256 = ANY (ARRAY(SELECT jsonb_array_elements_text(p_input -> 'blobs'))) ORDER BY b.sha256 FOR KEY SHARE;
    SELECT min(x.sha256) INTO missing FROM jsonb_array_elements_text(p_input -> 'blobs') AS x (sha256)
    WHERE NOT EXISTS (SELECT FROM blobs b WHERE b.project_id = p_project AND b.sha256 = x.sha256);
    IF missing IS NOT NULL THEN
      RETURN json_build_object('refused', 'blob', 'sha256', missing);
    END IF;
    INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
    SELECT p_project, p_session, 0, x.sha256 FROM jsonb_array_elements_text(p_input -> 'blobs') AS x (sha256) ORDER BY x.sha256
    ON CONFLICT DO NOTHING;
  END IF;
  DELETE FROM session_inbox AS i WHERE i.project_id = p_project AND i.session_id = p_session AND i.expires_at < at - interval '1 day';
  INSERT INTO session_inbox AS i (project_id, session_id, id, place, mode, entry_kind, type, key, role, format, bytes, tokens, data,
    meta, created_at, not_before, expires_at)
  VALUES (p_project, p_session, own_id, head.place + 1, p_input ->> 'mode', p_input ->> 'kind', p_input ->> 'type', p_input ->> 'key',
    p_input ->> 'role', p_input ->> 'format', (p_input ->> 'bytes')::int, (p_input ->> 'tokens')::int, p_input -> 'data',
    nullif(p_input -> 'meta', 'null'), at, coalesce((p_input ->> 'not_before')::timestamptz, at), (p_input ->> 'expires_at')::timestamptz)
  RETURNING i.* INTO added;
  INSERT INTO session_runs AS r (project_id, session_id, ttl_ms, progress, place, open_requests, wake_at)
  VALUES (p_project, p_session, 0, false, 0, 0, added.not_before)
  ON CONFLICT (project_id, session_id) DO UPDATE SET wake_at = least(r.wake_at, excluded.wake_at);
  UPDATE session_heads AS h SET run_place = head.place + 1, updated_at = greatest(at, head.updated_at)
  WHERE h.project_id = p_project AND h.session_id = p_session;
  hooks := ARRAY(SELECT w.id FROM webhooks w WHERE w.project_id = p_project AND 'input.added' = ANY (w.events));
  IF cardinality(hooks) > 0 THEN
    INSERT INTO webhook_deliveries AS d (project_id, webhook_id, session_id, input_session, delivered_seq, through_seq, attempts, not_before)
    SELECT p_project, x.id, own_id, p_session, -1, 0, 0, now() FROM unnest(hooks) AS x (id)
    ON CONFLICT (project_id, webhook_id, session_id) DO NOTHING;
  END IF;
  RETURN concat('{"state":"new","hooks":', to_json(hooks), ',"input":', ${inputJson('added')}, '}');
END`,
)

/** Answer: withdrawn, applied (the log has it), missing, or `refused`: fenced; null if there is no such session. */
export const WITHDRAW_INPUT = storedFunction(
  'withdraw_input',
  'p_project uuid, p_session uuid, p_fence bigint, p_id uuid, p_reason text',
  `DECLARE${RUN_VARIABLES}
  known record;
BEGIN${LOCK_RUN}${checkFenceText(false)}
  SELECT i.withdrawn_at INTO known FROM session_inbox i WHERE i.project_id = p_project AND i.session_id = p_session AND i.id = p_id;
  IF NOT FOUND THEN
    PERFORM FROM entries e WHERE e.project_id = p_project AND e.session_id = p_session AND e.id = p_id;
    RETURN CASE WHEN FOUND THEN 'applied' ELSE 'missing' END;
  END IF;
  IF known.withdrawn_at IS NULL THEN
    UPDATE session_inbox AS i SET withdrawn_at = at, reason = p_reason, data = '{}', meta = NULL, bytes = 2, place = head.place + 1
    WHERE i.project_id = p_project AND i.session_id = p_session AND i.id = p_id;
    DELETE FROM session_inbox AS i
    WHERE i.project_id = p_project AND i.session_id = p_session AND i.place < head.place - ${WITHDRAWN_KEPT} AND i.withdrawn_at IS NOT NULL;
    UPDATE session_heads AS h SET run_place = head.place + 1, updated_at = greatest(at, head.updated_at)
    WHERE h.project_id = p_project AND h.session_id = p_session;${WAKE}
  END IF;
  RETURN 'withdrawn';
END`,
)

/**
 * Leases sessions with due input and no valid lease, the longest due first. It waits for nobody: a head that somebody
 * holds is skipped, so two claimers take different sessions. Answer: `items`, how many were `skipped`, and when there are no
 * items, in how many ms the next one is due (`next_ms`, or null).
 */
export const CLAIM_WORK = storedFunction(
  'claim_work',
  'p_project uuid, p_owner text, p_ttl_ms int, p_max int, p_filter jsonb',
  `DECLARE${RUN_VARIABLES}
  p_session uuid;
  p_progress boolean := false;
  p_requires boolean := false;
  begun_at timestamptz := clock_timestamp();
  items text[] := '{}';
  skipped int := 0;
  inputs text;
  due int;
  shown int;
  next_ms bigint;
BEGIN
  FOR p_session IN
    SELECT o.session_id FROM (
      SELECT r.session_id, greatest(r.wake_at, r.expires_at) AS due_at FROM session_runs r
      WHERE r.project_id = p_project AND r.wake_at IS NOT NULL AND greatest(r.wake_at, r.expires_at) <= begun_at
      ORDER BY greatest(r.wake_at, r.expires_at), r.session_id LIMIT ${CLAIM_SCAN_MAX}
    ) o
    WHERE p_filter IS NULL OR EXISTS (
      SELECT FROM sessions s WHERE s.project_id = p_project AND s.id = o.session_id AND s.configs @> p_filter)
    ORDER BY o.due_at, o.session_id
  LOOP${TRY_RUN}${READ_LEASE}
    CONTINUE WHEN coalesce(lease.wake_at > at, true);
    IF ends_at > at THEN
      UPDATE session_runs AS r SET expires_at = ends_at WHERE r.project_id = p_project AND r.session_id = p_session;
      CONTINUE;
    END IF;
    SELECT count(*), count(*) FILTER (WHERE i.before < ${CLAIMED_BYTES_MAX}),
      string_agg(${inputJson('i')}, ',' ORDER BY i.place) FILTER (WHERE i.before < ${CLAIMED_BYTES_MAX})
    INTO due, shown, inputs
    FROM (
      SELECT i.*, sum(i.bytes) OVER (ORDER BY i.place) - i.bytes AS before FROM session_inbox i
      WHERE i.project_id = p_project AND i.session_id = p_session AND (i.not_before <= at OR ${dueAtOnceText('i')}) AND ${PENDING}
    ) i;
    IF due = 0 THEN${WAKE}
      CONTINUE;
    END IF;${TAKE_RUN}
    items := items || concat('{"session_id":"', p_session, '","fence":', next_fence, ',"owner":', to_json(p_owner), ',"expires_at":"', ${timestampText('ends_at')},
      '","inputs":[', inputs, '],"has_more":', CASE WHEN shown < due THEN 'true' ELSE 'false' END, '}');
    EXIT WHEN cardinality(items) >= p_max;
  END LOOP;
  IF cardinality(items) = 0 THEN
    SELECT ceil(extract(epoch FROM greatest(r.wake_at, r.expires_at) - begun_at) * 1000) INTO next_ms FROM session_runs r
    WHERE r.project_id = p_project AND r.wake_at IS NOT NULL AND greatest(r.wake_at, r.expires_at) > begun_at
    ORDER BY greatest(r.wake_at, r.expires_at), r.session_id LIMIT 1;
  END IF;
  RETURN concat('{"items":[', array_to_string(items, ','), '],"skipped":', skipped, ',"next_ms":', coalesce(next_ms::text, 'null'), '}');
END`,
)

/**
 * A page of the inbox in order. Parameters: $1 project, $2 session, $3 place to begin after, $4 how many, $5 whether the
 * withdrawn ones instead of the pending ones. Rows: place, json; `found`: how many there are with the next page's first.
 */
export const LIST_INPUTS = prepared(
  'list_inputs',
  `
SELECT i.place, ${inputJson('i')} AS json, i.found
FROM (
  SELECT i.*, count(*) OVER () AS found, sum(i.bytes) OVER (ORDER BY i.place) - i.bytes AS before FROM (
    SELECT i.* FROM session_inbox i
    WHERE i.project_id = $1 AND i.session_id = $2 AND i.place > $3
      AND CASE WHEN $5::boolean THEN i.withdrawn_at IS NOT NULL ELSE ${PENDING} END
    ORDER BY i.place LIMIT $4
  ) i
) i
WHERE i.before < ${PIECE_BYTES_MAX} ORDER BY i.place`,
)

/** Brings session_runs and heads in line with rows of inbox and requests that an import has stored. Parameters: $1 project. */
export const RESTORE_RUNS = {
  runs: prepared(
    'restore_runs',
    `
INSERT INTO session_runs AS r (project_id, session_id, ttl_ms, progress, place, wake_at, open_requests, waiting_since)
SELECT x.project_id, x.session_id, 0, false, 0, min(x.not_before), count(x.asked_at), max(x.asked_at)
FROM (
  SELECT i.project_id, i.session_id, i.not_before, NULL::timestamptz AS asked_at FROM session_inbox i
  WHERE i.project_id = $1 AND i.withdrawn_at IS NULL
  UNION ALL
  SELECT q.project_id, q.session_id, NULL, q.created_at FROM session_requests q WHERE q.project_id = $1 AND q.decision IS NULL
) x
WHERE x.project_id = $1 GROUP BY x.project_id, x.session_id
ON CONFLICT (project_id, session_id) DO UPDATE SET wake_at = excluded.wake_at, open_requests = excluded.open_requests,
  waiting_since = excluded.waiting_since`,
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
