import { joinedText } from '../../postgres/column_aggregates.js'
import { bySeq, VIEW_COLUMNS } from '../read/read_queries.js'
import { RETRACTION_TYPE } from './append_request.js'
import { COMPACTION_VARIABLES, RETRACT_COMPACTIONS, retractionData } from './compaction_steps.js'

/**
 * Entries that are looked at, from the newest live one on, for the newest of a kind or type, of which there is no index:
 * a few ms, while the session's head is locked.
 */
const FILTERED_ENTRIES_MAX = 10_000

/**
 * Bytes of retracted entries that one flush gives with its answer, at most: a few ms of writing them out, while the heads
 * are locked. What is longer is read afterwards.
 */
const SHOWN_BYTES_MAX = 256 * 1024

const LIVE = `e.project_id = p_project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
            AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM '${RETRACTION_TYPE}'`

/**
 * The newest live entries up to a seq. A retraction on the way knows the newest live entry before it, and those between
 * the two are not read: what was retracted is passed once, and not again by each retraction that comes later.
 */
function newest(up_to: string, limit: string): string {
  return `(
          WITH RECURSIVE walk (place, seq, tokens, bytes, is_live, lives, next_seq) AS (
            SELECT NULL::tid, 0::bigint, 0, 0, false, 0, (${up_to})::bigint
            UNION ALL
            SELECT e.place, e.seq, e.tokens, e.bytes, e.is_live, w.lives + e.is_live::int,
              CASE WHEN e.is_live THEN e.seq - 1 ELSE coalesce(e.live_seq, e.seq - 1) END
            FROM walk w CROSS JOIN LATERAL (
              SELECT e.ctid AS place, e.seq, e.tokens, e.bytes, e.live_seq, e.type IS DISTINCT FROM '${RETRACTION_TYPE}' AS is_live FROM entries e
              WHERE e.project_id = p_project AND e.session_id = p_sessions[part.place] AND e.seq <= w.next_seq
                AND e.retracted_by IS NULL
              ORDER BY e.seq DESC LIMIT 1
            ) e
            WHERE w.lives < ${limit}
          )
          SELECT w.place, w.seq, w.tokens, w.bytes FROM walk w WHERE w.is_live
        ) e`
}

const matching = (after: string, up_to: string) =>
  `(SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e WHERE ${LIVE} AND e.seq > ${after} AND e.seq <= ${up_to}
            AND (one.kind IS NULL OR e.kind = one.kind) AND (one.type IS NULL OR e.type = one.type)
          ORDER BY e.seq DESC LIMIT one.last)`

/** Those of a kind or type. All are after the retraction before it, or up to the entry that was the newest live one then. */
const NEWEST_MATCHING = `(
          ${matching(`greatest(newest_retraction, own_seq - ${FILTERED_ENTRIES_MAX})`, 'own_seq')}
          UNION ALL
          ${matching(`newest_live - ${FILTERED_ENTRIES_MAX}`, 'newest_live')}
          ORDER BY seq DESC LIMIT one.last
        ) e`

/** Up to where entries may be live once a retraction has marked its targets: without a filter, before the first of these. */
const LIVE_UP_TO = `CASE WHEN one.seqs IS NULL AND one.kind IS NULL AND one.type IS NULL
          THEN coalesce(targets[1] - 1, one.after_seq, 0) ELSE own_seq - 1 END`

function find(entries: string): string {
  return `SELECT coalesce(array_agg(e.seq ORDER BY e.seq), '{}'), array_agg(e.place ORDER BY e.seq), coalesce(sum(e.tokens), 0), coalesce(sum(e.bytes), 0)
        INTO targets, places, tokens_of_targets, bytes_of_targets FROM ${entries};`
}

export const RETRACTION_VARIABLES = `
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
  newest_live bigint;${COMPACTION_VARIABLES}`

/**
 * Steps of APPEND_ENTRIES, behind the inserts: carries out the retractions of the flush in the order of their seqs.
 * Each marks the entries before it that are live and are asked for, and the compactions that cover them, and is stored with
 * their seqs. The heads are locked, so that no entry is retracted twice.
 *
 * Those that follow each other and each take so many of the newest entries, of the same kind and type, are carried out
 * together: the first takes the newest, the second those before them, and so on. However many callers pop at once,
 * each step is made once.
 *
 * `p_retractions`, or null: a JSON array, one element per session that has any, of `place` (index of the session) and
 * `retractions`, those that are carried out together: `behind` (position of the first after the head), `ids`, `starts`
 * (how many entries those before it take), `bytes` (of each, without the seqs), and either `seqs`, `after_seq`, or `last`
 * (of all of them) with `kind` and `type` or without.
 *
 * Answer: one line for those that are carried out together, empty if nothing is stored in the session: the data of each, separated by
 * 0x01; then, unless these are too long, what the view `item` shows of the retracted entries, each behind 0x02, and whether
 * task tracking is disabled.
 */
export const RETRACT = `
  IF p_retractions IS NOT NULL THEN
    FOR part IN SELECT p.place, p.retractions FROM jsonb_to_recordset(p_retractions) AS p (place int, retractions jsonb) LOOP
      IF open_seqs[part.place] IS NULL THEN
        retracted := concat(retracted, repeat(E'\\n', jsonb_array_length(part.retractions)));
        CONTINUE;
      END IF;
      SELECT coalesce(h.retraction_seq, 0), coalesce(h.live_seq, 0) INTO newest_retraction, newest_live
      FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_sessions[part.place];
      retracted_tokens := 0;
      retracted_bytes := 0;
      FOR one IN
        SELECT r.behind, r.ids, r.starts, r.bytes, r.seqs, r.after_seq, r.last, r.kind, r.type
        FROM jsonb_to_recordset(part.retractions) AS r (behind int, ids uuid[], starts int[], bytes int, seqs bigint[],
          after_seq bigint, last int, kind text, type text)
      LOOP
        own_seq := open_seqs[part.place] + one.behind;
        IF one.seqs IS NOT NULL THEN
        ${find(`(SELECT DISTINCT u.seq FROM unnest(one.seqs) AS u (seq)) x
        CROSS JOIN LATERAL (SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e WHERE ${LIVE} AND ${bySeq('e', 'x.seq')}) e`)}
        ELSIF one.after_seq IS NOT NULL THEN
        ${find(`(SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e WHERE ${LIVE} AND e.seq > one.after_seq ORDER BY e.seq) e`)}
        ELSIF one.kind = 'message' AND one.type IS NULL THEN
        ${find(`(SELECT e.ctid AS place, e.seq, e.tokens, e.bytes FROM entries e WHERE ${LIVE} AND e.kind = 'message' ORDER BY e.seq DESC LIMIT one.last) e`)}
        ELSIF one.kind IS NOT NULL OR one.type IS NOT NULL THEN
        ${find(NEWEST_MATCHING)}
        ELSE
        ${find(newest('own_seq - 1', 'one.last'))}
        END IF;
        target_count := cardinality(targets);
        -- One by one, by where they were found: for a seq, or a list of any kind, the planner may read the whole session.
        FOR nth_target IN 1 .. target_count LOOP
          -- The entry's place from the newest on tells which retraction takes it.
          UPDATE entries AS e SET retracted_by = own_seq - 1 + width_bucket(target_count - nth_target, one.starts)
          WHERE e.project_id = p_project AND e.session_id = p_sessions[part.place] AND e.ctid = places[nth_target];
        END LOOP;${RETRACT_COMPACTIONS}
        SELECT coalesce(max(e.seq), 0) INTO newest_live FROM ${newest(LIVE_UP_TO, '1')};
        newest_retraction := own_seq - 1 + cardinality(one.ids);
        SELECT jsonb_agg(d.data ORDER BY d.nth), string_agg(d.data::text, E'\\x01' ORDER BY d.nth),
          sum(octet_length(d.data::text))
        INTO retraction_data, retraction_lines, retraction_bytes
        FROM (
          SELECT s.nth, ${retractionData('targets[greatest(target_count - coalesce(one.starts[s.nth + 1], target_count), 0) + 1 : target_count - s.start]', 's.nth')} AS data
          FROM unnest(one.starts) WITH ORDINALITY AS s (start, nth)
        ) d;
        INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data, live_seq)
        SELECT p_project, p_sessions[part.place], own_seq - 1 + i.nth, times[part.place], times[part.place], i.id,
          one.bytes + octet_length(i.data::text), 0, 'event', '${RETRACTION_TYPE}', i.data, newest_live
        FROM ROWS FROM (unnest(one.ids), jsonb_array_elements(retraction_data)) WITH ORDINALITY AS i (id, data, nth);
        retracted := concat(retracted, E'\\n', retraction_lines);
        shown_bytes := shown_bytes + bytes_of_targets;
        IF shown_bytes <= ${SHOWN_BYTES_MAX} THEN
          SELECT concat(retracted, ${joinedText(VIEW_COLUMNS.item)}, E'\\x02', (
            SELECT s.disable_task_tracking FROM sessions s WHERE s.project_id = p_project AND s.id = p_sessions[part.place]))
          INTO retracted
          FROM (
            SELECT o.* FROM unnest(targets) AS x (seq) CROSS JOIN LATERAL (
              SELECT o.* FROM entries o
              WHERE o.project_id = p_project AND o.session_id = p_sessions[part.place] AND ${bySeq('o', 'x.seq')}
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
      WHERE h.project_id = p_project AND h.session_id = p_sessions[part.place];
    END LOOP;
  END IF;`
