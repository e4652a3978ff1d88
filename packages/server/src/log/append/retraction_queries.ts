import { RETRACTION_TYPE } from './append_request.js'

/**
 * Entries that are looked at, from the newest live one on, for the newest of a kind or type, of which there is no index:
 * a few ms, while the session's head is locked.
 */
const FILTERED_ENTRIES_MAX = 10_000

const LIVE = `e.project_id = p_project AND e.session_id = p_sessions[part.place] AND e.seq < own_seq
            AND e.retracted_by IS NULL AND e.type IS DISTINCT FROM '${RETRACTION_TYPE}'`

/**
 * The newest live entries before a retraction. All are after the retraction before it, or up to the entry that was the
 * newest then, so that what was retracted before is not read.
 */
function newest(limit: string, filter = '', reach = (_from: string) => '0'): string {
  const some = (range: string) =>
    `(SELECT e.seq, e.tokens FROM entries e WHERE ${LIVE} AND ${range}${filter} ORDER BY e.seq DESC LIMIT ${limit})`
  return `(
          ${some(`e.seq > greatest(newest_retraction, ${reach('own_seq')})`)}
          UNION ALL
          ${some(`e.seq <= newest_live AND e.seq > ${reach('newest_live')}`)}
          ORDER BY seq DESC LIMIT ${limit}
        ) e`
}

const NEWEST_MATCHING = newest(
  'one.last',
  ' AND (one.kind IS NULL OR e.kind = one.kind) AND (one.type IS NULL OR e.type = one.type)',
  (from) =>
    `CASE WHEN one.kind IS NULL AND one.type IS NULL THEN 0 ELSE ${from} - ${FILTERED_ENTRIES_MAX} END`,
)

function find(entries: string): string {
  return `SELECT array_agg(e.seq ORDER BY e.seq), coalesce(sum(e.tokens), 0) INTO targets, tokens_of_targets
        FROM ${entries};`
}

export const RETRACTION_VARIABLES = `
  part record;
  one record;
  own_seq bigint;
  targets bigint[];
  tokens_of_targets bigint;
  retraction_data jsonb;
  retracted_tokens bigint;
  retracted_bytes bigint;
  newest_retraction bigint;
  newest_live bigint;`

/**
 * Steps of APPEND_ENTRIES, behind the inserts: carries out the retractions of the flush in the order of their seqs.
 * Each marks the entries before it that are live and are asked for, and is stored with their seqs. The heads are
 * locked, so that no entry is retracted twice.
 *
 * `p_retractions`, or null: a JSON array, one element per session that has any, of `place` (index of the session) and
 * `retractions`: `behind` (position after the head), `id`, `bytes` (without the seqs), and either `seqs`, `after_seq`, or
 * `last` with `kind` and `type` or without.
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
        SELECT r.behind, r.id, r.bytes, r.seqs, r.after_seq, r.last, r.kind, r.type
        FROM jsonb_to_recordset(part.retractions)
          AS r (behind int, id uuid, bytes int, seqs bigint[], after_seq bigint, last int, kind text, type text)
      LOOP
        own_seq := open_seqs[part.place] + one.behind;
        IF one.seqs IS NOT NULL THEN
        ${find(`entries e WHERE ${LIVE} AND e.seq = ANY (one.seqs)`)}
        ELSIF one.after_seq IS NOT NULL THEN
        ${find(`entries e WHERE ${LIVE} AND e.seq > one.after_seq`)}
        ELSIF one.kind = 'message' AND one.type IS NULL THEN
        ${find(`(SELECT e.seq, e.tokens FROM entries e WHERE ${LIVE} AND e.kind = 'message' ORDER BY e.seq DESC LIMIT one.last) e`)}
        ELSE
        ${find(NEWEST_MATCHING)}
        END IF;
        IF targets IS NOT NULL THEN
          UPDATE entries AS e SET retracted_by = own_seq
          WHERE e.project_id = p_project AND e.session_id = p_sessions[part.place] AND e.seq = ANY (targets);
        END IF;
        SELECT coalesce(max(e.seq), 0) INTO newest_live FROM ${newest('1')};
        newest_retraction := own_seq;
        retraction_data := jsonb_build_object('seqs', coalesce(to_jsonb(targets), '[]'));
        INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data)
        VALUES (p_project, p_sessions[part.place], own_seq, times[part.place], times[part.place], one.id,
          one.bytes + octet_length(retraction_data::text), 0, 'event', '${RETRACTION_TYPE}', retraction_data);
        retracted_tokens := retracted_tokens + tokens_of_targets;
        retracted_bytes := retracted_bytes + octet_length(retraction_data::text);
        retracted := concat(retracted, E'\\n', retraction_data);
      END LOOP;
      UPDATE session_heads AS h
      SET total_tokens = h.total_tokens - retracted_tokens, bytes = h.bytes + retracted_bytes,
        retraction_seq = newest_retraction, live_seq = newest_live
      WHERE h.project_id = p_project AND h.session_id = p_sessions[part.place];
    END LOOP;
  END IF;`
