import { marksText } from '../../changes/mark_changes.js'
import { timestampText } from '../../lists/resource_json.js'
import { onShard, SHARDS_VARIABLE } from '../../postgres/citus/shards_here.js'
import { storedFunction } from '../../postgres/stored_function.js'
import {
  ATOMIC_ANSWER,
  ATOMIC_PARAMETERS,
  ATOMIC_VARIABLES,
  CHECK_ATOMIC,
  PATCH_CONFIGS,
  REMEMBER_ATOMIC,
} from './atomic_queries.js'
import { CHECK_UNREVISED } from './compaction_steps.js'
import { INSERT_EVENTS, MOVE_HEADS, PLACE } from './event_steps.js'
import { REFER, REFERENCES } from './reference_queries.js'
import { RETRACT, RETRACTION_VARIABLES } from './retraction_queries.js'

const LOCK_HEADS = `
  open_seqs := last_seqs;
  last_messages := array_fill(NULL::uuid, ARRAY[cardinality(p_sessions)]);
${onShard(
  'session_heads',
  `
    SELECT ${PLACE}, h.last_seq, greatest(begun_at, h.updated_at), h.last_message_id
    FROM session_heads h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions)
    ORDER BY h.session_id FOR NO KEY UPDATE`,
  ['begun_at'],
  {
    gives: ['int', 'bigint', 'timestamptz', 'uuid'],
    before: `
  FOR place_of_head, seq_of_head, time_of_head, message_of_head IN`,
    after: `
  LOOP
    last_seqs[place_of_head] := seq_of_head;
    times[place_of_head] := time_of_head;
    last_messages[place_of_head] := message_of_head;
    seq_of_condition := p_if_match[place_of_head];${CHECK_UNREVISED}
    IF coalesce(seq_of_condition = seq_of_head, true) THEN
      open_seqs[place_of_head] := seq_of_head;
      IF p_new_entries[place_of_head] > 0 THEN
        moved_sessions := moved_sessions || p_sessions[place_of_head];
      END IF;
    END IF;
  END LOOP;`,
  },
)}`

const STORE = `${onShard(
  'session_heads',
  `
  UPDATE session_heads AS h
  SET last_seq = h.last_seq + p_new_entries[${PLACE}], updated_at = greatest(now(), h.updated_at),
    bytes = h.bytes + p_new_bytes[${PLACE}], counted = h.counted + p_new_entries[${PLACE}],
    total_tokens = h.total_tokens + p_new_tokens[${PLACE}],
    last_message_id = coalesce(p_new_last_messages[${PLACE}], h.last_message_id)
  WHERE h.project_id = p_project AND h.session_id = ANY (moved_sessions)`,
  ['moved_sessions'],
)}${onShard(
  'entries',
  `
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens,
    kind, type, role, format, key, occurred_at, data, meta)
  SELECT p_project, p_sessions[i.place], open_seqs[i.place] + i.behind, times[i.place], times[i.place], i.id,
    CASE WHEN i.is_first_message THEN last_messages[i.place] ELSE i.parent_id END, i.bytes, i.tokens,
    i.kind, i.type, i.role, i.format, i.key, i.occurred_at, i.data, nullif(i.meta, 'null')
  FROM ROWS FROM (
    unnest(p_places, p_behind, p_ids, p_parents, p_are_first_messages, p_bytes, p_tokens, p_kinds, p_types, p_roles,
      p_formats, p_entry_keys, p_occurred),
    jsonb_array_elements(p_data), jsonb_array_elements(p_metas)
  ) AS i (place, behind, id, parent_id, is_first_message, bytes, tokens, kind, type, role, format, key, occurred_at, data, meta)
  WHERE open_seqs[i.place] IS NOT NULL`,
  ['open_seqs', 'times', 'last_messages'],
)}${RETRACT}
  IF p_sessions_of_messages IS NOT NULL THEN
    SELECT string_agg(width_bucket(s.id, p_sessions)::text, ',') INTO untracked
    FROM sessions s
    WHERE s.project_id = p_project AND s.id = ANY (p_sessions_of_messages) AND s.disable_task_tracking;
  END IF;`

/** A flush of only events takes the shorter way. */
const STORE_ANY = `
  IF p_kinds IS NULL THEN${MOVE_HEADS}${INSERT_EVENTS}
  ELSE${LOCK_HEADS}${STORE}
  END IF;`

const REMEMBER = `
  IF p_keys IS NOT NULL THEN${onShard(
    'idempotency_keys',
    `
    INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, seqs)
    SELECT p_project, k.key, k.request_hash, p_sessions[k.place], now(), (
        SELECT array_agg(CASE WHEN x.behind > 0 THEN open_seqs[k.place] + x.behind ELSE x.known_seq END ORDER BY x.ord)
        FROM unnest(p_key_behind[k.first:k.last], p_key_known_seqs[k.first:k.last]) WITH ORDINALITY
          AS x(behind, known_seq, ord)
      )
    FROM unnest(p_keys, p_key_hashes, p_key_places, p_key_firsts, p_key_lasts)
      AS k(key, request_hash, place, first, last)
    WHERE open_seqs[k.place] IS NOT NULL`,
    ['open_seqs'],
  )}
  END IF;`

const ANSWER = `
  IF NOT coalesce(now() = ALL (times), false) THEN
    SELECT string_agg(CASE WHEN t.at <> now() THEN ${timestampText('t.at')} ELSE '' END, ',' ORDER BY t.ord) INTO later
    FROM unnest(times) WITH ORDINALITY AS t(at, ord);
  END IF;
  IF p_wanted IS NOT NULL THEN
    SELECT string_agg(concat(E'\\n', p_data -> (w.place - 1), E'\\n', nullif(p_metas -> (w.place - 1), 'null')), '' ORDER BY w.ord)
    INTO wanted
    FROM unnest(p_wanted) WITH ORDINALITY AS w(place, ord);
  END IF;
  RETURN concat(array_to_string(last_seqs, ',', ''), E'\\n', later, E'\\n', ${timestampText('now()')}, E'\\n',
    array_to_string(last_messages, ',', ''), E'\\n', untracked, wanted, retracted`

const PARAMETERS = `p_project uuid, p_sessions uuid[], p_new_entries int[], p_new_bytes bigint[], p_places int[],
  p_behind int[], p_ids uuid[], p_bytes int[], p_types text[], p_data jsonb, p_if_match bigint[],
  p_new_tokens bigint[], p_new_last_messages uuid[], p_parents uuid[], p_are_first_messages boolean[],
  p_tokens int[], p_kinds text[], p_roles text[], p_formats text[], p_entry_keys text[],
  p_metas jsonb, p_sessions_of_messages uuid[], p_keys text[], p_key_hashes text[],
  p_key_places int[], p_key_firsts int[], p_key_lasts int[], p_key_behind int[],
  p_key_known_seqs bigint[], p_wanted int[], p_retractions jsonb, p_occurred timestamptz[]`

/** `mark` stands behind all that the function stores, `answer` behind all that it answers. */
function appendBody({
  store,
  mark = '',
  variables = '',
  answer = '',
}: Record<'store', string> & Partial<Record<'mark' | 'variables' | 'answer', string>>): string {
  return `DECLARE
  last_seqs bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_sessions)]);
  times timestamptz[] := array_fill(NULL::timestamptz, ARRAY[cardinality(p_sessions)]);
  last_messages uuid[];
  -- The last seqs of the sessions that store their entries; null where If-Match does not hold.
  open_seqs bigint[];
  moved_sessions uuid[] := '{}';
  later text;
  untracked text;
  wanted text;
  retracted text;
  consumers text[];
  place_of_head int;
  seq_of_head bigint;
  time_of_head timestamptz;
  message_of_head uuid;
  seq_of_condition bigint;
  -- What a statement that only reads calls now() is another machine's, if Citus has to ask that.
  begun_at timestamptz := now();${SHARDS_VARIABLE}${RETRACTION_VARIABLES}${variables}
BEGIN${store}${mark}${ANSWER}${answer});
END`
}

/**
 * One flush: every append of one project that waited for the same commit, in one call.
 *
 * It locks the head rows of the sessions in the order of their ids, so that two flushes cannot deadlock, numbers the
 * entries after the heads that it finds, inserts them, and moves the heads. A session that does not exist, or whose
 * If-Match no longer holds, stores nothing and does not affect the others. Entries stored before under an idempotency
 * key or an id were found by the two look-ups below. If another flush, of this node or another, stores one in between,
 * a unique violation follows, and the flush is run again. Keys are inserted in a fixed order, so that two flushes
 * cannot deadlock over them either.
 *
 * Every microsecond counts, since this is the cost of an append. So nothing is joined: an entry and a head find their
 * session by its index in an array. Expressions with a subquery, which PL/pgSQL cannot compute by itself, stand where
 * few flushes come. The order of locks depends on the index by which the heads are found.
 *
 * Parameters, one element per session, ordered by id: `p_sessions`, `p_new_entries` (how many), `p_new_bytes`. One
 * element per entry: `p_places` (index of its session, from 1), `p_behind` (position after the head, from 1), `p_ids`,
 * `p_bytes`, `p_types`; `p_data` as a JSON array. For a flush of only events, without conditions and keys of their own, `p_kinds` and what
 * belongs to it are null. Otherwise, per session: `p_if_match` (or, see SessionPart, a seq after which nothing may have been
 * retracted or compacted), `p_new_tokens`, `p_new_last_messages`; per entry:
 * `p_parents` (the previous message in this flush), `p_are_first_messages` (in this flush), `p_tokens`, `p_kinds`,
 * `p_roles`, `p_formats`, `p_entry_keys`, and `p_metas` as a JSON array; an array without any value may be empty.
 * `p_sessions_of_messages`: the sessions that get messages, or null. Per key, or null: `p_keys`, `p_key_hashes`,
 * `p_key_places` (index of its session), `p_key_firsts` and `p_key_lasts` (first and last index of its seqs in the
 * following), `p_key_behind` (positions after the head, 0 for an entry stored before) and `p_key_known_seqs` (the seqs
 * of those). `p_wanted`: indexes (from 1) of the entries whose data and meta are returned as the database writes them,
 * or null. `p_retractions`: see retraction_queries.ts. `p_occurred`, per entry: when it happened; null if no entry says so.
 *
 * Answer: lines. For the sessions in order, separated by commas, the last seqs before this flush (empty: no such
 * session; -1 - seq: something was retracted or compacted after the given seq), and the times that are later than now (an empty line if none is); then now, the last messages before
 * (an empty line for a flush of only events), and the indexes of the sessions with task tracking disabled. Two more
 * lines for each element of `p_wanted`: data, and meta, which may be empty. Those of retractions: see
 * retraction_queries.ts.
 */
export const APPEND_ENTRIES = storedFunction(
  'append_entries',
  PARAMETERS,
  appendBody({ store: STORE_ANY + REMEMBER }),
)

/** Marks the sessions that got entries. */
const MARK = `
  SELECT p.consumers INTO consumers FROM projects p WHERE p.id = p_project;
  IF cardinality(consumers) > 0 THEN${onShard(
    'change_marks',
    marksText(
      'p_project',
      '(SELECT unnest(consumers) AS consumer)',
      `(
    SELECT p_sessions[i.place] AS session_id FROM generate_subscripts(p_sessions, 1) AS i (place)
    WHERE open_seqs[i.place] IS NOT NULL AND p_new_entries[i.place] > 0)`,
    ),
    ['consumers', 'open_seqs'],
  )}
  END IF;`

/**
 * The same for a project that may have consumers of changes: it marks the sessions that get entries, for as many
 * consumers as it finds there. A function of its own, so that the other costs what it did.
 */
export const APPEND_MARKED_ENTRIES = storedFunction(
  'append_marked_entries',
  PARAMETERS,
  appendBody({ store: STORE_ANY + REMEMBER, mark: MARK }),
)

/** The same as APPEND_MARKED_ENTRIES for a flush in which an entry refers to a blob. */
export const APPEND_REFERRING_ENTRIES = storedFunction(
  'append_referring_entries',
  `${PARAMETERS}, ${REFERENCES}`,
  appendBody({ store: STORE_ANY + REFER + REMEMBER, mark: MARK }),
)

/**
 * A flush of only events without conditions takes the shorter way here as well. All of its sessions are among `p_atomic`:
 * where one does not exist, the heads that were moved go back.
 */
const STORE_ATOMICALLY = `
  IF p_kinds IS NULL THEN
    BEGIN${MOVE_HEADS}
      IF array_position(last_seqs, NULL) IS NOT NULL THEN
        RAISE no_data_found;
      END IF;${INSERT_EVENTS}
    EXCEPTION WHEN no_data_found THEN
      open_seqs := '{}';
      refused := '0';
    END;
  ELSE${LOCK_HEADS}${CHECK_ATOMIC}${STORE}${PATCH_CONFIGS}
  END IF;`

/** The same for a flush with a request for several sessions: see atomic_queries.ts. */
export const APPEND_ATOMICALLY = storedFunction(
  'append_atomically',
  `${PARAMETERS}, ${ATOMIC_PARAMETERS}, ${REFERENCES}`,
  appendBody({
    variables: ATOMIC_VARIABLES,
    store: STORE_ATOMICALLY + REFER + REMEMBER_ATOMIC,
    mark: MARK,
    answer: ATOMIC_ANSWER,
  }),
)
