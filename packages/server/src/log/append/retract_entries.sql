-- Carries out the retractions of a flush, in the order of their seqs, within append_entries.sql and after its inserts.
--
-- Each marks the entries before it that are live and are asked for, and the compactions that cover them, and is stored with
-- their seqs. The heads are locked, so that no entry is retracted twice. Those that follow each other and each take so many
-- of the newest entries, of the same kind and type, are carried out together: the first takes the newest, the second those
-- before them, and so on. However many callers pop at once, each step is made once.
--
-- The planner's settings are those of the caller. On a cluster the function runs where its caller does, and is not
-- distributed by its project: so its first parameter has another name.
CREATE OR REPLACE FUNCTION {name}(
  project uuid,
  -- By session, in the order of ids: which, the seq of its head before the flush, null if it stores nothing, and the time
  -- of its entries.
  p_sessions uuid[],
  open_seqs bigint[],
  times timestamptz[],
  -- A JSON array. By session: `place` (its index) and `retractions`, those that are carried out together: `behind`
  -- (position of the first after the head), `ids`, `starts` (how many entries those before it take), `bytes` (of each,
  -- without the seqs), and either `seqs`, `after_seq`, or `last` (of all of them) with or without `kind` and `type`.
  p_retractions jsonb
)
-- For retractions that are carried out together, one line, each after a line feed. It is empty if nothing is stored in the
-- session. Otherwise the data of each, separated by 0x01; then, unless these are too long, the columns of the retracted
-- entries, each after 0x02, and whether task tracking is disabled.
RETURNS text
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
  retracted text;
  part record;
  one record;
  own_seq bigint;
  targets bigint[];
  places tid[];
  target_count int;
  tokens_of_targets bigint;
  bytes_of_targets bigint;
  retraction_data jsonb;
  retraction_lines text;
  retraction_bytes bigint;
  retracted_tokens bigint;
  retracted_bytes bigint;
  shown_bytes bigint := 0;
  newest_retraction bigint;
  newest_live bigint;
  live_up_to bigint;
  compaction record;
  -- The compactions that cover a retracted entry, and the place of the retraction that retracts each.
  fallen bigint[];
  fallen_with int[];
BEGIN
  FOR part IN
    SELECT p.place, p.retractions FROM jsonb_to_recordset(p_retractions) AS p (place int, retractions jsonb)
  LOOP
    IF open_seqs[part.place] IS NULL THEN
      retracted := concat(retracted, repeat(E'\n', jsonb_array_length(part.retractions)));
      CONTINUE;
    END IF;
    SELECT coalesce(h.retraction_seq, 0), coalesce(h.live_seq, 0) INTO newest_retraction, newest_live
    FROM session_heads h WHERE h.project_id = project AND h.session_id = p_sessions[part.place];
    retracted_tokens := 0;
    retracted_bytes := 0;
    FOR one IN
      SELECT r.behind, r.ids, r.starts, r.bytes, r.seqs, r.after_seq, r.last, r.kind, r.type
      FROM jsonb_to_recordset(part.retractions) AS r (behind int, ids uuid[], starts int[], bytes int, seqs bigint[],
        after_seq bigint, last int, kind text, type text)
    LOOP
      own_seq := open_seqs[part.place] + one.behind;
      IF one.seqs IS NOT NULL THEN
        -- The order and the limit say by which index an entry is found: of `=` alone, with statistics that are older
        -- than the session, the planner may take another one and read the whole session.
        SELECT coalesce(array_agg(e.seq ORDER BY e.seq), '{}'), array_agg(e.place ORDER BY e.seq),
          coalesce(sum(e.tokens), 0), coalesce(sum(e.bytes), 0)
        INTO targets, places, tokens_of_targets, bytes_of_targets
        FROM (SELECT DISTINCT u.seq FROM unnest(one.seqs) AS u (seq)) x
        CROSS JOIN LATERAL (
          SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e
          WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
            AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM 'annals.retraction'
            AND e.seq >= x.seq AND e.seq <= x.seq ORDER BY e.seq LIMIT 1
        ) e;
      ELSIF one.after_seq IS NOT NULL THEN
        SELECT coalesce(array_agg(e.seq ORDER BY e.seq), '{}'), array_agg(e.place ORDER BY e.seq),
          coalesce(sum(e.tokens), 0), coalesce(sum(e.bytes), 0)
        INTO targets, places, tokens_of_targets, bytes_of_targets
        FROM (
          SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e
          WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
            AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM 'annals.retraction'
            AND e.seq > one.after_seq ORDER BY e.seq
        ) e;
      ELSIF one.kind = 'message' AND one.type IS NULL THEN
        SELECT coalesce(array_agg(e.seq ORDER BY e.seq), '{}'), array_agg(e.place ORDER BY e.seq),
          coalesce(sum(e.tokens), 0), coalesce(sum(e.bytes), 0)
        INTO targets, places, tokens_of_targets, bytes_of_targets
        FROM (
          SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e
          WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
            AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM 'annals.retraction'
            AND e.kind = 'message' ORDER BY e.seq DESC LIMIT one.last
        ) e;
      ELSIF one.kind IS NOT NULL OR one.type IS NOT NULL THEN
        -- The newest of a kind or type, of which there is no index. All are after the retraction before it, or up to
        -- the entry that was the newest live one then. From each of the two on, 10,000 entries are looked at: a few
        -- ms, while the head is locked.
        SELECT coalesce(array_agg(e.seq ORDER BY e.seq), '{}'), array_agg(e.place ORDER BY e.seq),
          coalesce(sum(e.tokens), 0), coalesce(sum(e.bytes), 0)
        INTO targets, places, tokens_of_targets, bytes_of_targets
        FROM (
          (
            SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e
            WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
              AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM 'annals.retraction'
              AND e.seq > greatest(newest_retraction, own_seq - 10000) AND e.seq <= own_seq
              AND (one.kind IS NULL OR e.kind = one.kind) AND (one.type IS NULL OR e.type = one.type)
            ORDER BY e.seq DESC LIMIT one.last
          )
          UNION ALL
          (
            SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e
            WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
              AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM 'annals.retraction'
              AND e.seq > newest_live - 10000 AND e.seq <= newest_live
              AND (one.kind IS NULL OR e.kind = one.kind) AND (one.type IS NULL OR e.type = one.type)
            ORDER BY e.seq DESC LIMIT one.last
          )
          ORDER BY seq DESC LIMIT one.last
        ) e;
      ELSE
        -- The newest live entries. A retraction on the way knows the newest live entry before it, and those between the
        -- two are not read: what was retracted is passed once, and not again by each retraction that comes later.
        WITH RECURSIVE walk (place, seq, tokens, bytes, is_live, lives, next_seq) AS (
          SELECT NULL::tid, 0::bigint, 0, 0, false, 0, own_seq - 1
          UNION ALL
          SELECT e.place, e.seq, e.tokens, e.bytes, e.is_live, w.lives + e.is_live::int,
            CASE WHEN e.is_live THEN e.seq - 1 ELSE coalesce(e.live_seq, e.seq - 1) END
          FROM walk w CROSS JOIN LATERAL (
            SELECT e.ctid AS place, e.seq, e.tokens, e.bytes, e.live_seq,
              e.type IS DISTINCT FROM 'annals.retraction' AS is_live
            FROM entries e
            WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq <= w.next_seq
              AND e.retracted_by IS NULL
            ORDER BY e.seq DESC LIMIT 1
          ) e
          WHERE w.lives < one.last
        )
        SELECT coalesce(array_agg(w.seq ORDER BY w.seq), '{}'), array_agg(w.place ORDER BY w.seq),
          coalesce(sum(w.tokens), 0), coalesce(sum(w.bytes), 0)
        INTO targets, places, tokens_of_targets, bytes_of_targets
        FROM walk w WHERE w.is_live;
      END IF;
      target_count := cardinality(targets);
      -- One by one, by where they were found: for a seq, or a list of any kind, the planner may read the whole session.
      FOR nth_target IN 1 .. target_count LOOP
        -- The entry's place from the newest on tells which retraction takes it.
        UPDATE entries AS e SET retracted_by = own_seq - 1 + width_bucket(target_count - nth_target, one.starts)
        WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.ctid = places[nth_target];
      END LOOP;

      -- The compactions that cover a target are retracted with it. Of retractions that are carried out together, the
      -- one that takes the newest entry in the range does so. An event of that type may also be a caller's from before
      -- there were compactions, with anything in it: that covers nothing.
      fallen := '{}';
      fallen_with := '{}';
      IF target_count > 0 THEN
        FOR compaction IN
          SELECT e.seq, e.ctid AS place, c.nth FROM entries e
          CROSS JOIN LATERAL (SELECT {from_seq} AS from_seq, {to_seq} AS to_seq OFFSET 0) r
          CROSS JOIN LATERAL (SELECT width_bucket(r.to_seq, targets) AS nth OFFSET 0) c
          WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.type = 'annals.compaction'
            AND e.retracted_by IS NULL AND e.seq < own_seq AND e.seq > targets[1]
            AND c.nth > 0 AND targets[c.nth] >= r.from_seq
          ORDER BY e.seq
        LOOP
          fallen := fallen || compaction.seq;
          fallen_with := fallen_with || width_bucket(target_count - compaction.nth, one.starts);
          UPDATE entries AS e SET retracted_by = own_seq - 1 + fallen_with[cardinality(fallen)]
          WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.ctid = compaction.place;
        END LOOP;
      END IF;

      -- Without a filter, all that may still be live is before the first of the targets.
      live_up_to := CASE WHEN one.seqs IS NULL AND one.kind IS NULL AND one.type IS NULL
        THEN coalesce(targets[1] - 1, one.after_seq, 0) ELSE own_seq - 1 END;
      WITH RECURSIVE walk (seq, is_live, next_seq) AS (
        SELECT 0::bigint, false, live_up_to
        UNION ALL
        SELECT e.seq, e.is_live, coalesce(e.live_seq, e.seq - 1)
        FROM walk w CROSS JOIN LATERAL (
          SELECT e.seq, e.live_seq, e.type IS DISTINCT FROM 'annals.retraction' AS is_live FROM entries e
          WHERE e.project_id = project AND e.session_id = p_sessions[part.place] AND e.seq <= w.next_seq
            AND e.retracted_by IS NULL
          ORDER BY e.seq DESC LIMIT 1
        ) e
        WHERE NOT w.is_live
      )
      SELECT coalesce(max(w.seq), 0) INTO newest_live FROM walk w WHERE w.is_live;

      newest_retraction := own_seq - 1 + cardinality(one.ids);
      SELECT jsonb_agg(d.data ORDER BY d.nth), string_agg(d.data::text, E'\x01' ORDER BY d.nth),
        sum(octet_length(d.data::text))
      INTO retraction_data, retraction_lines, retraction_bytes
      FROM (
        SELECT t.nth, CASE WHEN t.nth = ANY (fallen_with) THEN (
            SELECT jsonb_build_object(
              'seqs', (SELECT array_agg(x.seq ORDER BY x.seq) FROM unnest(t.seqs || array_agg(f.seq)) AS x (seq)),
              'compactions', array_agg(f.seq ORDER BY f.seq))
            FROM unnest(fallen, fallen_with) AS f (seq, nth) WHERE f.nth = t.nth
          ) ELSE jsonb_build_object('seqs', t.seqs) END AS data
        FROM (
          SELECT s.nth, targets[
            greatest(target_count - coalesce(one.starts[s.nth + 1], target_count), 0) + 1 : target_count - s.start
          ] AS seqs
          FROM unnest(one.starts) WITH ORDINALITY AS s (start, nth)
        ) t
      ) d;
      INSERT INTO entries AS e
        (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data, live_seq)
      SELECT project, p_sessions[part.place], own_seq - 1 + i.nth, times[part.place], times[part.place], i.id,
        one.bytes + octet_length(i.data::text), 0, 'event', 'annals.retraction', i.data, newest_live
      FROM ROWS FROM (unnest(one.ids), jsonb_array_elements(retraction_data)) WITH ORDINALITY AS i (id, data, nth);

      -- Writing out 256 KiB of retracted entries takes a few ms, while the heads are locked. More is read afterwards.
      retracted := concat(retracted, E'\n', retraction_lines);
      shown_bytes := shown_bytes + bytes_of_targets;
      IF shown_bytes <= 262144 THEN
        SELECT concat(retracted, {item_columns}, E'\x02', (
          SELECT s.disable_task_tracking FROM sessions s
          WHERE s.project_id = project AND s.id = p_sessions[part.place]))
        INTO retracted
        FROM (
          SELECT o.* FROM unnest(targets) AS x (seq) CROSS JOIN LATERAL (
            SELECT o.* FROM entries o
            WHERE o.project_id = project AND o.session_id = p_sessions[part.place]
              AND o.seq >= x.seq AND o.seq <= x.seq ORDER BY o.seq LIMIT 1
          ) o
          ORDER BY o.seq
        ) e;
      END IF;
      retracted_tokens := retracted_tokens + tokens_of_targets;
      retracted_bytes := retracted_bytes + retraction_bytes;
    END LOOP;
    UPDATE session_heads AS h
    SET total_tokens = h.total_tokens - retracted_tokens, bytes = h.bytes + retracted_bytes,
      retraction_seq = newest_retraction, live_seq = newest_live
    WHERE h.project_id = project AND h.session_id = p_sessions[part.place];
  END LOOP;
  RETURN retracted;
END
$function$
