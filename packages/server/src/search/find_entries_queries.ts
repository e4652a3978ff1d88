import { timestampText } from '../lists/resource_json.js'
import type { StoredFunction } from '../postgres/stored_function.js'
import { storedFunction } from '../postgres/stored_function.js'

/** What narrows a search inside the index: must be what the index is made of, to the letter. */
const SCOPES = `ARRAY[c.project_id::text || ' ' || c.segment::text, 's' || c.session_id::text, 'u' || c.user_id::text, 't' || c.type, 'r' || c.role]`

/** Segments that are searched at once, at most: where nothing was found yet, the more the further it goes. */
const SEGMENTS_MAX = 8
/** Entries that are taken up at once first, and at most. */
const TAKEN = { first: 64, most: 4_096 }

/**
 * Finds entries by their words, the newest first, from a position on that is part of it if p_seq is null. The words come
 * from an index in no order, so it goes from segment to segment and sorts what each has; and looks at the log whether
 * the entry is still there to be found.
 *
 * It ends after about p_ms, wherever it is. Answer, as JSON: `hits`, [session_id, seq, created_at, bytes] of each;
 * `at`, the position that it came to, null where there is nothing more.
 *
 * p_scopes: those that an entry must have all of. p_sessions: of which it must have one. p_kind: event, message or null.
 */
export const FIND_ENTRIES: StoredFunction = storedFunction(
  'find_entries',
  `p_project uuid, p_words tsquery, p_scopes text[], p_sessions text[], p_kind text, p_configs jsonb,
  p_from timestamptz, p_at timestamptz, p_session uuid, p_seq bigint, p_limit int, p_ms int`,
  `DECLARE
  began timestamptz := clock_timestamp();
  at_time timestamptz := p_at;
  at_session uuid := coalesce(p_session, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  at_seq bigint := coalesce(p_seq, 9223372036854775807);
  hits json[] := '{}';
  segments text[];
  segments_max int := 1;
  last_segment int := 2147483647;
  begins timestamptz;
  taken int;
  n int;
  c record;
  size bigint;
  looked_at int := 0;
BEGIN
  LOOP
    segments := '{}';
    FOR c IN
      SELECT s.segment, s.begins_at FROM search_segments s
      WHERE s.project_id = p_project AND s.segment < last_segment AND s.begins_at <= at_time
      ORDER BY s.segment DESC LIMIT segments_max
    LOOP
      segments := array_append(segments, p_project::text || ' ' || c.segment::text);
      last_segment := c.segment;
      begins := c.begins_at;
    END LOOP;
    EXIT WHEN segments = '{}';
    taken := ${TAKEN.first};
    LOOP
      n := 0;
      FOR c IN
        SELECT c.session_id, c.seq, c.created_at, c.type FROM search_entries c
        WHERE c.project_id = p_project AND ${SCOPES} && segments AND ${SCOPES} @> p_scopes
          AND (${SCOPES} && coalesce(p_sessions, segments)) AND c.words @@ p_words
          AND c.created_at >= p_from AND (c.created_at, c.session_id, c.seq) < (at_time, at_session, at_seq)
        ORDER BY c.created_at DESC, c.session_id DESC, c.seq DESC LIMIT taken
      LOOP
        n := n + 1;
        looked_at := looked_at + 1;
        IF looked_at % 64 = 0 AND clock_timestamp() > began + make_interval(secs => p_ms / 1000.0) THEN
          RETURN ${answer('true')};
        END IF;
        at_time := c.created_at;
        at_session := c.session_id;
        at_seq := c.seq;
        CONTINUE WHEN p_kind = CASE WHEN c.type IS NULL THEN 'event' ELSE 'message' END;
        PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = c.session_id;
        CONTINUE WHEN NOT FOUND;
        IF p_configs IS NOT NULL THEN
          PERFORM FROM sessions s WHERE s.project_id = p_project AND s.id = c.session_id AND s.configs @> p_configs;
          CONTINUE WHEN NOT FOUND;
        END IF;
        SELECT e.bytes INTO size FROM entries e
        WHERE e.project_id = p_project AND e.session_id = c.session_id AND e.seq = c.seq AND e.retracted_by IS NULL;
        CONTINUE WHEN NOT FOUND;
        hits := array_append(hits, json_build_array(c.session_id, c.seq, ${timestampText('c.created_at')}, size));
        IF cardinality(hits) >= p_limit THEN
          RETURN ${answer('true')};
        END IF;
      END LOOP;
      EXIT WHEN n < taken;
      taken := least(taken * 8, ${TAKEN.most});
    END LOOP;
    EXIT WHEN begins <= p_from;
    IF clock_timestamp() > began + make_interval(secs => p_ms / 1000.0) THEN
      -- All of these segments were searched: it goes on right before them.
      at_time := least(at_time, begins);
      at_session := '00000000-0000-0000-0000-000000000000';
      at_seq := 0;
      RETURN ${answer('true')};
    END IF;
    segments_max := least(segments_max * 2, ${SEGMENTS_MAX});
  END LOOP;
  RETURN ${answer('false')};
END`,
  {
    // The index of words gives bitmaps; all else is looked up by complete keys.
    enable_seqscan: 'off',
    enable_indexscan: 'off',
    enable_indexonlyscan: 'off',
    enable_bitmapscan: 'on',
    // Citus can plan what names project_id more than once only with its value, and says so of a generic plan by its cost.
    plan_cache_mode: 'auto',
  },
)

function answer(isMore: string): string {
  return `json_build_object('hits', array_to_json(hits), 'at', CASE WHEN ${isMore} THEN json_build_array(${timestampText('at_time')}, at_session, at_seq) END)`
}
