-- One flush: all appends of one project that waited for the same commit, in one call.
--
-- It locks the heads of the sessions in the order of their ids, so that two flushes cannot deadlock, numbers the entries
-- after the heads that it finds, inserts them, and moves the heads. A session that does not exist, or whose condition no
-- longer holds, stores nothing and does not affect the others. Entries that were stored before under an idempotency key
-- or an id were looked up before the flush (look_up.ts). If another flush stores one in between, a unique violation
-- follows, and the flush is run again. Keys are inserted in a fixed order, so that two flushes cannot deadlock over them.
--
-- Every microsecond counts, since this is the cost of an append. So nothing is joined: an entry and a head find their
-- session by its index in p_sessions (width_bucket is a binary search). Expressions with a subquery, which PL/pgSQL
-- cannot compute by itself, stand where few flushes come. The order of locks depends on the index that finds the heads.
--
-- {session_heads}, {entries}, {idempotency_keys} and {change_marks} are these tables, or their shards on the machine of a
-- cluster that runs this: see postgres/citus/on_shards.sql.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  -- By session, in the order of ids: which, how many new entries, and of how many bytes.
  p_sessions uuid[],
  p_new_entries int[],
  p_new_bytes bigint[],
  -- By entry. The index of its session, from 1; its position after the head, from 1. The data is a JSON array.
  p_places int[],
  p_behind int[],
  p_ids uuid[],
  p_bytes int[],
  p_types text[],
  p_data jsonb,
  -- When it happened; null if no entry says so.
  p_occurred timestamptz[],
  -- Whether the project may have consumers of changes, for which sessions that get entries are marked.
  p_marks boolean,
  -- The next thirteen, but for the fences, are null in a flush of only events without keys of their own and other
  -- conditions. In the arrays among them, missing elements count as null. By session: If-Match, or -1 - n: nothing may have
  -- been retracted or compacted after seq n.
  p_if_match bigint[],
  -- The fence of the lease under which the session is written to, if its caller sent one.
  p_fences bigint[],
  p_new_tokens bigint[],
  p_new_last_messages uuid[],
  -- By entry: the previous message in this flush, and whether it is the first one. The metas are a JSON array.
  p_parents uuid[],
  p_are_first_messages boolean[],
  p_tokens int[],
  p_kinds text[],
  p_roles text[],
  p_formats text[],
  p_entry_keys text[],
  p_metas jsonb,
  -- The sessions that get messages, or null.
  p_sessions_of_messages uuid[],
  -- By idempotency key, or null: its session's index, and the first and last index of its entries in what follows.
  p_keys text[],
  p_key_hashes text[],
  p_key_places int[],
  p_key_firsts int[],
  p_key_lasts int[],
  -- By entry of a key: its position after the head, or 0 and its seq if it was stored before.
  p_key_behind int[],
  p_key_known_seqs bigint[],
  -- Where a request for several sessions has a key: of each key, whether it is such a request's, and by entry of a key
  -- the index of its session. Otherwise empty.
  p_are_atomic_keys boolean[],
  p_key_entry_places int[],
  -- Indexes of the entries whose data and meta are returned as the database writes them, or null.
  p_wanted int[],
  -- The retractions among them, or null: see retract_entries.sql.
  p_retractions jsonb,
  -- References to blobs: a JSON array of `place` (index of the session), `behind` (position after the head) and `sha256`,
  -- or null.
  p_references jsonb,
  -- The indexes of the sessions of requests that append to several of them, all or nothing; or null. If one of these
  -- sessions cannot store its part (it does not exist, its condition does not hold, or its merged configs would be too
  -- large), none of them stores anything: a request that shared the flush with a refused one is stored by the next.
  p_atomic int[],
  -- Of these: a JSON array of `place` (index of the session, each once) and `patch`, which is merged into its configs.
  p_patches jsonb,
  p_configs_bytes_max int,
  -- Inputs that become entries of this flush, or null: a JSON array of `place` (index of the session) and `ids`. Of their
  -- entries only places and ids are given, and p_kinds is null. If one of a session's is not pending, or they are too long
  -- together, the session stores nothing.
  p_apply jsonb,
  -- Whether sessions begin chains, for which thirteen parameters above are not null: see proof/. One that has a chain
  -- goes on with it.
  p_begins_chains boolean
)
-- Lines. For the sessions in order, separated by commas, the last seqs before this flush (empty: no such session, or its
-- fence is another, or an input was not pending: see held_back.ts; -1 - seq: something was retracted or compacted after the given seq), and the times that are later than now (an empty
-- line if none is); then now, the last messages before (an empty line for a flush of only events), and the indexes of the
-- sessions with task tracking disabled. For each element of p_wanted two lines: data, and meta, which may be empty. Then
-- the lines of retract_entries.sql; with p_apply, a JSON array that has of each element of p_wanted what an input is. The
-- last line is empty, or, if the sessions in p_atomic stored nothing, it has 0 and the indexes of those whose merged configs
-- would be too large.
RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
-- Or else a plan that was made while a project was small reads all of its heads until they are analyzed.
SET cpu_tuple_cost = 100
AS $function$
#variable_conflict use_column
DECLARE
  last_seqs bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_sessions)]);
  times timestamptz[] := array_fill(NULL::timestamptz, ARRAY[cardinality(p_sessions)]);
  last_messages uuid[];
  -- The last seqs of the sessions that store their entries; null where a condition does not hold.
  open_seqs bigint[];
  moved_sessions uuid[] := '{}';
  later text;
  untracked text;
  wanted text;
  retracted text;
  refused text;
  consumers text[];
  place_of_head int;
  seq_of_head bigint;
  time_of_head timestamptz;
  message_of_head uuid;
  seq_of_condition bigint;
  fence_of_head bigint;
  requires_fence_of_head boolean;
  input_ids uuid[];
  are_pending boolean;
  given_kinds text[];
  bytes_of_session bigint;
  tokens_of_session bigint;
  applied text;
  -- By session, the head of its chain; and what chain_entries.sql makes of them.
  chains bytea[];
  chain_of_head bytea;
  has_chains boolean := p_begins_chains;
  links bytea[];
  -- What a statement that only reads calls now() is another machine's, if Citus has to ask that.
  begun_at timestamptz := now();
  -- Patches of configs.
  patch jsonb;
  before record;
  after jsonb;
  {terms_variables}
BEGIN
  IF p_kinds IS NULL THEN
    -- Only events: the heads need not be known before they are moved, which costs an eighth less.
    FOR place_of_head, seq_of_head, time_of_head IN
      UPDATE {session_heads} AS h
      SET last_seq = h.last_seq + p_new_entries[width_bucket(h.session_id, p_sessions)],
        updated_at = greatest(now(), h.updated_at),
        bytes = h.bytes + p_new_bytes[width_bucket(h.session_id, p_sessions)],
        counted = h.counted + p_new_entries[width_bucket(h.session_id, p_sessions)]
      WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions) AND h.proof IS NULL
        AND CASE WHEN p_fences IS NULL THEN h.requires_fence IS NULL
          ELSE coalesce(p_fences[width_bucket(h.session_id, p_sessions)] = coalesce(h.fence, 0), h.requires_fence IS NULL) END
      RETURNING width_bucket(h.session_id, p_sessions), h.last_seq, h.updated_at
    LOOP
      last_seqs[place_of_head] := seq_of_head - p_new_entries[place_of_head];
      times[place_of_head] := time_of_head;
    END LOOP;
    open_seqs := last_seqs;
    INSERT INTO {entries} AS e
      (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, occurred_at, data)
    SELECT p_project, p_sessions[i.place], open_seqs[i.place] + i.behind, times[i.place], times[i.place], i.id, i.bytes, 0,
      'event', i.type, i.occurred_at, i.data
    FROM ROWS FROM (unnest(p_places, p_behind, p_ids, p_bytes, p_types, p_occurred), jsonb_array_elements(p_data))
      AS i (place, behind, id, bytes, type, occurred_at, data)
    WHERE open_seqs[i.place] IS NOT NULL;
  ELSE
    open_seqs := last_seqs;
    last_messages := array_fill(NULL::uuid, ARRAY[cardinality(p_sessions)]);
    FOR place_of_head, seq_of_head, time_of_head, message_of_head, fence_of_head, requires_fence_of_head, chain_of_head IN
      SELECT width_bucket(h.session_id, p_sessions), h.last_seq, greatest(begun_at, h.updated_at), h.last_message_id,
        h.fence, h.requires_fence, h.proof
      FROM {session_heads} h WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions)
      ORDER BY h.session_id FOR NO KEY UPDATE
    LOOP
      CONTINUE WHEN coalesce(p_fences[place_of_head] <> coalesce(fence_of_head, 0), requires_fence_of_head, false);
      last_seqs[place_of_head] := seq_of_head;
      times[place_of_head] := time_of_head;
      last_messages[place_of_head] := message_of_head;
      IF chain_of_head IS NOT NULL THEN
        chains[place_of_head] := chain_of_head;
        has_chains := true;
      END IF;
      seq_of_condition := p_if_match[place_of_head];
      IF seq_of_condition < 0 THEN
        IF EXISTS (
          SELECT FROM {session_heads} h
          WHERE h.project_id = p_project AND h.session_id = p_sessions[place_of_head]
            AND h.retraction_seq > -1 - seq_of_condition
        ) OR EXISTS (
          SELECT FROM {entries} e
          WHERE e.project_id = p_project AND e.session_id = p_sessions[place_of_head] AND e.type = 'annals.compaction'
            AND e.retracted_by IS NULL AND e.seq > -1 - seq_of_condition
        ) THEN
          last_seqs[place_of_head] := -1 - seq_of_head;
        ELSE
          seq_of_condition := seq_of_head;
        END IF;
      END IF;
      IF coalesce(seq_of_condition = seq_of_head, true) THEN
        open_seqs[place_of_head] := seq_of_head;
        IF p_new_entries[place_of_head] > 0 THEN
          moved_sessions := moved_sessions || p_sessions[place_of_head];
        END IF;
      END IF;
    END LOOP;

    -- Under the lock of the head, nobody else applies or withdraws an input of the session.
    IF p_apply IS NOT NULL THEN
      FOR place_of_head, input_ids IN SELECT a.place, a.ids FROM jsonb_to_recordset(p_apply) AS a (place int, ids uuid[]) LOOP
        CONTINUE WHEN open_seqs[place_of_head] IS NULL;
        -- One by one: for a list of ids the planner may read the whole session.
        SELECT count(*) = cardinality(input_ids) AND (count(*) = 1 OR sum(i.bytes) <= {input_bytes_max}) AND NOT EXISTS (
          SELECT FROM unnest(input_ids) AS x (id) CROSS JOIN LATERAL (
            SELECT FROM entries e
            WHERE e.project_id = p_project AND {by_id}
          ) e
        ) INTO are_pending
        FROM session_inbox i
        WHERE i.project_id = p_project AND i.session_id = p_sessions[place_of_head] AND i.id = ANY (input_ids)
          AND i.withdrawn_at IS NULL AND coalesce(i.expires_at > begun_at, true);
        IF NOT are_pending THEN
          last_seqs[place_of_head] := NULL;
          open_seqs[place_of_head] := NULL;
          moved_sessions := array_remove(moved_sessions, p_sessions[place_of_head]);
        END IF;
      END LOOP;

      -- What they are, beside the other entries; and which message comes before each, of those of its session in this flush.
      given_kinds := p_kinds;
      SELECT array_agg(y.kind), array_agg(y.type), array_agg(y.role), array_agg(y.format), array_agg(y.key), array_agg(y.bytes),
        array_agg(y.tokens), jsonb_agg(y.data), jsonb_agg(y.meta), array_agg(CASE WHEN y.kind = 'message' THEN p_ids[y.after] END),
        array_agg(y.kind = 'message' AND y.after IS NULL)
      INTO p_kinds, p_types, p_roles, p_formats, p_entry_keys, p_bytes, p_tokens, p_data, p_metas, p_parents, p_are_first_messages
      FROM (
        SELECT coalesce(i.entry_kind, x.kind) AS kind, coalesce(i.type, x.type) AS type, coalesce(i.role, x.role) AS role,
          coalesce(i.format, x.format) AS format, coalesce(i.key, x.key) AS key, coalesce(i.bytes, x.bytes) AS bytes,
          coalesce(i.tokens, x.tokens) AS tokens, coalesce(i.data, x.data) AS data, coalesce(i.meta, x.meta) AS meta,
          max(x.at) FILTER (WHERE coalesce(i.entry_kind, x.kind) = 'message')
            OVER (PARTITION BY x.place ORDER BY x.at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS after
        FROM ROWS FROM (
          unnest(p_places, p_ids, p_kinds, p_types, p_roles, p_formats, p_entry_keys, p_bytes, p_tokens),
          jsonb_array_elements(p_data), jsonb_array_elements(p_metas)
        ) WITH ORDINALITY AS x (place, id, kind, type, role, format, key, bytes, tokens, data, meta, at)
        LEFT JOIN LATERAL (
          SELECT i.* FROM session_inbox i
          WHERE i.project_id = p_project AND i.session_id = p_sessions[x.place] AND i.id = x.id AND x.kind IS NULL
            AND open_seqs[x.place] IS NOT NULL
          ORDER BY i.id LIMIT 1 -- One by one, or else the planner may read the whole inbox.
        ) i ON true
        ORDER BY x.at
      ) y;
      FOR place_of_head, bytes_of_session, tokens_of_session, message_of_head IN
        SELECT x.place, sum(x.bytes), sum(x.tokens), (array_agg(x.id ORDER BY x.at DESC) FILTER (WHERE x.kind = 'message'))[1]
        FROM unnest(p_places, p_ids, p_kinds, p_bytes, p_tokens) WITH ORDINALITY AS x (place, id, kind, bytes, tokens, at)
        GROUP BY x.place HAVING bool_or(given_kinds[x.at] IS NULL)
      LOOP
        p_new_bytes[place_of_head] := bytes_of_session;
        p_new_tokens[place_of_head] := tokens_of_session;
        p_new_last_messages[place_of_head] := message_of_head;
        IF message_of_head IS NOT NULL THEN
          p_sessions_of_messages := p_sessions_of_messages || p_sessions[place_of_head];
        END IF;
      END LOOP;
      SELECT nullif(coalesce(p_references, '[]') || coalesce(jsonb_agg(jsonb_build_object('place', x.place, 'behind', x.behind, 'sha256', b.sha256)), '[]'), '[]')
      INTO p_references
      FROM ROWS FROM (unnest(p_places, p_behind, given_kinds), jsonb_array_elements(p_data)) AS x (place, behind, kind, data)
      CROSS JOIN LATERAL jsonb_path_query(x.data, '{blobs_of_entry}') AS b (sha256)
      WHERE x.kind IS NULL;
      SELECT concat(E'\n', json_agg(json_build_object('kind', p_kinds[w.place], 'type', p_types[w.place], 'role', p_roles[w.place],
        'format', p_formats[w.place], 'key', p_entry_keys[w.place], 'bytes', p_bytes[w.place], 'tokens', p_tokens[w.place], 'parent_id',
        CASE WHEN p_are_first_messages[w.place] THEN last_messages[p_places[w.place]] ELSE p_parents[w.place] END) ORDER BY w.ord))
      INTO applied FROM unnest(p_wanted) WITH ORDINALITY AS w (place, ord);
    END IF;

    -- All or nothing: before the first write, is there a session that cannot store its part?
    IF p_atomic IS NOT NULL THEN
      FOR place_of_head, patch IN
        SELECT p.place, p.patch FROM jsonb_to_recordset(p_patches) AS p (place int, patch jsonb)
      LOOP
        CONTINUE WHEN open_seqs[place_of_head] IS NULL;
        SELECT s.configs INTO before FROM sessions s WHERE s.project_id = p_project AND s.id = p_sessions[place_of_head];
        after := {merged_configs};
        IF octet_length(after::text) > p_configs_bytes_max THEN
          open_seqs[place_of_head] := NULL;
          refused := concat_ws(',', refused, place_of_head);
        END IF;
      END LOOP;
      IF (SELECT bool_or(open_seqs[a.place] IS NULL) FROM unnest(p_atomic) AS a (place)) THEN
        FOREACH place_of_head IN ARRAY p_atomic LOOP
          open_seqs[place_of_head] := NULL;
          moved_sessions := array_remove(moved_sessions, p_sessions[place_of_head]);
        END LOOP;
        refused := concat_ws(',', 0, refused);
      END IF;
    END IF;

    -- A session with retractions is chained when they are carried out, which have a part in it.
    IF has_chains THEN
      links := {chain_entries}(p_project, p_sessions, CASE WHEN p_retractions IS NULL THEN open_seqs ELSE (
          SELECT array_agg(CASE WHEN p_retractions @> jsonb_build_array(jsonb_build_object('place', o.place)) THEN NULL ELSE o.seq END ORDER BY o.place)
          FROM unnest(open_seqs) WITH ORDINALITY AS o (seq, place)
        ) END, times, chains, p_begins_chains, p_places, p_behind, p_ids, p_kinds, p_types, p_roles, p_formats, p_entry_keys,
        p_occurred, p_data, p_metas);
    END IF;

    UPDATE {session_heads} AS h
    SET last_seq = h.last_seq + p_new_entries[width_bucket(h.session_id, p_sessions)],
      updated_at = greatest(now(), h.updated_at),
      bytes = h.bytes + p_new_bytes[width_bucket(h.session_id, p_sessions)],
      counted = h.counted + p_new_entries[width_bucket(h.session_id, p_sessions)],
      proof = coalesce(links[cardinality(p_places) + width_bucket(h.session_id, p_sessions)], h.proof),
      total_tokens = h.total_tokens + p_new_tokens[width_bucket(h.session_id, p_sessions)],
      last_message_id = coalesce(p_new_last_messages[width_bucket(h.session_id, p_sessions)], h.last_message_id)
    WHERE h.project_id = p_project AND h.session_id = ANY (moved_sessions);
    INSERT INTO {entries} AS e (project_id, session_id, seq, created_at, updated_at, id, parent_id, bytes, tokens,
      kind, type, role, format, key, occurred_at, data, meta, proof)
    SELECT p_project, p_sessions[i.place], open_seqs[i.place] + i.behind, times[i.place], times[i.place], i.id,
      CASE WHEN i.is_first_message THEN last_messages[i.place] ELSE i.parent_id END, i.bytes, i.tokens,
      i.kind, i.type, i.role, i.format, i.key, i.occurred_at, i.data, nullif(i.meta, 'null'), i.link
    FROM ROWS FROM (
      unnest(p_places, p_behind, p_ids, p_parents, p_are_first_messages, p_bytes, p_tokens, p_kinds, p_types, p_roles,
        p_formats, p_entry_keys, p_occurred, links[:cardinality(p_places)]),
      jsonb_array_elements(p_data), jsonb_array_elements(p_metas)
    ) AS i (place, behind, id, parent_id, is_first_message, bytes, tokens, kind, type, role, format, key, occurred_at,
      link, data, meta)
    WHERE open_seqs[i.place] IS NOT NULL;

    IF p_apply IS NOT NULL THEN
      FOR place_of_head, input_ids IN SELECT a.place, a.ids FROM jsonb_to_recordset(p_apply) AS a (place int, ids uuid[]) LOOP
        -- What somebody appended under the id of an input is no input any more, or it would be claimed again and again.
        DELETE FROM session_inbox AS i
        WHERE i.project_id = p_project AND i.session_id = p_sessions[place_of_head] AND i.id = ANY (input_ids)
          AND (open_seqs[place_of_head] IS NOT NULL OR EXISTS (
            SELECT FROM entries e
            WHERE e.project_id = p_project AND {by_id_of_input}
          ));
        CONTINUE WHEN NOT FOUND;
        -- What was due when it came still is, where the clock was set back since.
        SELECT min(CASE WHEN i.not_before <= i.created_at THEN least(i.not_before, begun_at) ELSE i.not_before END)
        INTO time_of_head FROM session_inbox i
        WHERE i.project_id = p_project AND i.session_id = p_sessions[place_of_head] AND i.withdrawn_at IS NULL;
        UPDATE session_runs AS r SET wake_at = time_of_head
        WHERE r.project_id = p_project AND r.session_id = p_sessions[place_of_head];
      END LOOP;
    END IF;

    IF p_retractions IS NOT NULL THEN
      retracted := {retract_entries}(p_project, p_sessions, open_seqs, times, p_retractions);
      IF has_chains THEN
        FOR place_of_head IN SELECT p.place FROM jsonb_to_recordset(p_retractions) AS p (place int) LOOP
          CONTINUE WHEN open_seqs[place_of_head] IS NULL;
          PERFORM {chain_stored}(p_project, p_sessions[place_of_head], open_seqs[place_of_head]);
        END LOOP;
      END IF;
    END IF;

    IF p_sessions_of_messages IS NOT NULL THEN
      SELECT string_agg(width_bucket(s.id, p_sessions)::text, ',') INTO untracked
      FROM sessions s
      WHERE s.project_id = p_project AND s.id = ANY (p_sessions_of_messages) AND s.disable_task_tracking;
    END IF;

    IF p_atomic IS NOT NULL THEN
      FOR place_of_head, patch IN
        SELECT p.place, p.patch FROM jsonb_to_recordset(p_patches) AS p (place int, patch jsonb)
      LOOP
        CONTINUE WHEN open_seqs[place_of_head] IS NULL;
        SELECT s.id, s.user_id, s.parent_id, s.configs, s.created_at INTO before
        FROM sessions s WHERE s.project_id = p_project AND s.id = p_sessions[place_of_head];
        after := {merged_configs};
        {move_terms}
        UPDATE sessions AS s SET configs = after WHERE s.project_id = p_project AND s.id = before.id;
      END LOOP;
    END IF;
  END IF;

  -- By itself: in the statements above, it would cost all others a tenth.
  IF p_fences IS NOT NULL THEN
    UPDATE {session_heads} AS h SET fenced_at = begun_at
    WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions)
      AND (p_fences[width_bucket(h.session_id, p_sessions)] + open_seqs[width_bucket(h.session_id, p_sessions)]) IS NOT NULL
      AND p_new_entries[width_bucket(h.session_id, p_sessions)] > 0;
  END IF;

  -- A blob that is not there, or is just being deleted, violates the foreign key, and nothing is stored. Blobs are locked
  -- in the order of their hashes, as where they are deleted.
  IF p_references IS NOT NULL THEN
    INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
    SELECT p_project, p_sessions[i.place], open_seqs[i.place] + i.behind, i.sha256
    FROM jsonb_to_recordset(p_references) AS i (place int, behind int, sha256 text)
    WHERE open_seqs[i.place] IS NOT NULL ORDER BY i.sha256
    ON CONFLICT DO NOTHING;
  END IF;

  -- A request for several sessions has its seqs as its answer, since they are of several logs.
  IF p_keys IS NOT NULL THEN
    INSERT INTO {idempotency_keys} AS k (project_id, key, request_hash, owner_id, created_at, seqs, answer)
    SELECT p_project, k.key, k.request_hash, p_sessions[k.place], now(),
      CASE WHEN k.is_atomic THEN NULL ELSE s.seqs END, CASE WHEN k.is_atomic THEN array_to_string(s.seqs, ',') END
    FROM unnest(p_keys, p_key_hashes, p_key_places, p_key_firsts, p_key_lasts, p_are_atomic_keys)
      AS k(key, request_hash, place, first, last, is_atomic)
    CROSS JOIN LATERAL (
      SELECT array_agg(
        CASE WHEN x.behind > 0 THEN open_seqs[coalesce(x.place, k.place)] + x.behind ELSE x.known_seq END ORDER BY x.ord
      ) AS seqs
      FROM unnest(p_key_behind[k.first:k.last], p_key_known_seqs[k.first:k.last], p_key_entry_places[k.first:k.last])
        WITH ORDINALITY AS x(behind, known_seq, place, ord)
    ) s
    WHERE open_seqs[k.place] IS NOT NULL;
  END IF;

  -- A mark is committed with the change. One that is there already stays as it is: see changes/mark_changes.ts.
  IF p_marks THEN
    SELECT p.consumers INTO consumers FROM projects p WHERE p.id = p_project;
    IF cardinality(consumers) > 0 THEN
      INSERT INTO {change_marks} AS c (project_id, consumer, session_id, marked_at, due_at, failures)
      SELECT p_project, x.consumer, p_sessions[i.place], now(), now(), 0
      FROM unnest(consumers) AS x (consumer) CROSS JOIN generate_subscripts(p_sessions, 1) AS i (place)
      WHERE open_seqs[i.place] IS NOT NULL AND p_new_entries[i.place] > 0
      ORDER BY x.consumer, p_sessions[i.place]
      ON CONFLICT (project_id, session_id, consumer) DO NOTHING;
    END IF;
  END IF;

  IF NOT coalesce(now() = ALL (times), false) THEN
    SELECT string_agg(
      CASE WHEN t.at <> now() THEN to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') ELSE '' END,
      ',' ORDER BY t.ord
    ) INTO later
    FROM unnest(times) WITH ORDINALITY AS t(at, ord);
  END IF;
  IF p_wanted IS NOT NULL THEN
    SELECT string_agg(
      concat(E'\n', p_data -> (w.place - 1), E'\n', nullif(p_metas -> (w.place - 1), 'null')), '' ORDER BY w.ord
    ) INTO wanted
    FROM unnest(p_wanted) WITH ORDINALITY AS w(place, ord);
  END IF;
  RETURN concat(array_to_string(last_seqs, ',', ''), E'\n', later, E'\n',
    to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), E'\n',
    array_to_string(last_messages, ',', ''), E'\n', untracked, wanted, retracted, applied, E'\n', refused);
END
$function$
