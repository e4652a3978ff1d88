import { timestampText } from '@annals/kits/lists/resource_json.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { SEGMENT_ENTRIES } from './search_queries.js'

/** Narrows a search inside the index: must equal the index's expression, to the letter. */
export const SCOPES = `ARRAY[c.project_id::text || ' ' || c.segment::text, 's' || c.session_id::text, 'u' || c.user_id::text]`

/**
 * Runs, planned each time that they are looked for: with a plan from when there were few it would read all of a project.
 * Parameters: $1 project, $2 scopes to have one of, $3 of these as well, or null, $4 to have all of, or null, $5 words, $6 from,
 * $7 the position, $8 to.
 */
const FIND_RUNS = `SELECT c.session_id, c.seq, c.last_at FROM search_entries c
WHERE c.project_id = $1 AND ${SCOPES} && $2 AND ($3 IS NULL OR ${SCOPES} && $3) AND ($4 IS NULL OR ${SCOPES} @> $4) AND c.words::tsvector @@ $5
  AND c.last_at >= $6 AND c.first_at <= least($7, $8)
ORDER BY c.last_at DESC, c.session_id DESC, c.seq DESC`

/**
 * Segments that are searched at once: where the page is not full yet, the more the further it goes, up to so many; and
 * as many as may have so many runs to look at, since those that have few cost little more together than each by itself.
 */
const SEGMENTS_MAX = 8
const SPARSE_SEGMENTS_MAX = 512
const RUNS_WANTED = 64

/**
 * Sessions with no more entries than these are searched without going through segments: those that were written to last
 * come first, so many at once, and the more the further it goes.
 */
const ENTRIES_OF_SESSIONS_MAX = SEGMENTS_MAX * SEGMENT_ENTRIES
const SESSIONS_AT_ONCE = 16

/** Runs that are read even when time is up. */
const RUNS_MIN = 8

/** Ends the search; everything before the place in the variables was looked at. */
const ANSWER = `RETURN (
  SELECT json_build_object(
    'hits', coalesce(json_agg(json_build_array(h.session_id, h.seq, ${timestampText('h.at')}, h.bytes)
      ORDER BY h.at DESC, h.session_id DESC, h.seq DESC), '[]'),
    'at', CASE WHEN rest_at > '-infinity' THEN json_build_array(${timestampText('rest_at')}, rest_session, rest_seq) END)
  FROM (
    SELECT * FROM unnest(found_at, found_sessions, found_seqs, found_bytes) AS f (at, session_id, seq, bytes)
    WHERE (f.at, f.session_id) >= (rest_at, rest_session)
    ORDER BY f.at DESC, f.session_id DESC, f.seq DESC LIMIT p_limit
  ) h);`

export const FIND_ENTRIES = storedFunctionIn('search/find_entries.sql', {
  sessions_at_once: SESSIONS_AT_ONCE,
  entries_of_sessions_max: ENTRIES_OF_SESSIONS_MAX,
  answer: ANSWER,
  find_runs: FIND_RUNS,
  runs_min: RUNS_MIN,
  segments_max: SEGMENTS_MAX,
  runs_wanted: RUNS_WANTED,
  sparse_segments_max: SPARSE_SEGMENTS_MAX,
})
