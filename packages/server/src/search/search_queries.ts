import { HEARD_S } from '@annals/kits/changes/project_consumers.js'
import { armsText, beside } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared, type Statement } from '@annals/kits/postgres/statement.js'
import { fill, sqlFile, storedInsert } from '@annals/kits/postgres/stored_function.js'

/** The tables of words: see migrations/0019_search.sql and 0025_search_index_of_runs.sql. */

/** Entries of a segment, about. */
export const SEGMENT_ENTRIES = 16_384

export const MAKE_FIRST_SEGMENTS = storedInsert(
  'make_first_segments',
  [],
  fill(sqlFile('search/make_first_segments.sql'), { segment_entries: SEGMENT_ENTRIES }).trimEnd(),
)

export const INDEX_RUNS = storedInsert(
  'index_runs',
  ['uuid[]', 'bigint[]', 'bigint[]', 'int[]', 'timestamptz[]', 'timestamptz[]', 'text[]'],
  `INSERT INTO search_entries AS n (project_id, session_id, seq, last_seq, segment, first_at, last_at, user_id, words)
SELECT $1, r.session_id, r.seq, r.last_seq, r.segment, r.first_at, r.last_at, s.user_id, r.words
FROM unnest($2, $3, $4, $5, $6, $7, $8)
  AS r (session_id, seq, last_seq, segment, first_at, last_at, words)
${beside('s', 'SELECT o.user_id FROM sessions o WHERE o.project_id = $1 AND o.id = r.session_id')}`,
)

export const MAKE_NEXT_SEGMENT = storedInsert(
  'make_next_segment',
  ['int'],
  `INSERT INTO search_segments AS n (project_id, segment, begins_at, entries, last_at)
SELECT $1, s.segment + 1, s.last_at + interval '1 microsecond', 0, '-infinity'
FROM search_segments s WHERE s.project_id = $1 AND s.segment = $2`,
)

/** Writes entries into the index, in the transaction that moves the cursor. Parameters of each: $1 project. */
export const INDEX_ENTRIES = {
  /** Only one writes to a project's segments at a time. Row: one, if it has any. */
  lock: prepared(
    'lock_segments',
    'SELECT s.segment FROM search_segments s WHERE s.project_id = $1 AND s.segment = 0 FOR UPDATE',
  ),
  /**
   * The first segments of a project, by where its entries are in time: as if those of a session were spread evenly over
   * the time from its first to its last. Old entries so come to segments of the size of the others.
   */
  first_segments: MAKE_FIRST_SEGMENTS.statement,
  /** The segments of times. $2 times, in any number. Rows: segment, in their order. */
  segments: prepared(
    'find_segments',
    `
SELECT g.segment FROM unnest($2::timestamptz[]) WITH ORDINALITY AS r (at, place)
${beside('g', 'SELECT o.segment FROM search_segments o WHERE o.project_id = $1 AND o.begins_at <= r.at ORDER BY o.segment DESC LIMIT 1')}
ORDER BY r.place`,
  ),
  /** Takes out the runs of sessions, $2, that begin at seqs, $3, or after them. */
  take_out: prepared(
    'take_out_runs',
    `
WITH t AS (DELETE FROM search_entries AS t WHERE t.project_id = $1 AND t.ctid = ANY (ARRAY(
  SELECT o.ctid FROM unnest($2::uuid[], $3::bigint[]) AS r (session_id, seq)
  ${beside('o', 'SELECT i.ctid FROM search_entries i WHERE i.project_id = $1 AND i.session_id = r.session_id AND i.seq >= r.seq')}))
RETURNING t.session_id, t.seq, t.last_seq, t.segment, t.first_at, t.last_at, t.words)
SELECT t.session_id, t.seq, t.last_seq, t.segment, ${timestampText('t.first_at')} AS first_at, ${timestampText('t.last_at')} AS last_at, t.words
FROM t`,
  ),
  /** $2 sessions, $3 first and $4 last seqs, $5 segments, $6 first and $7 last times, $8 words. */
  runs: INDEX_RUNS.statement,
  /** Counts what came to a segment, $2, by $3, the last of it at $4, of which some happened at $5. Row: is_full, if it is the newest one. */
  count: prepared(
    'count_segment',
    `
UPDATE search_segments AS s SET entries = s.entries + $3, last_at = greatest(s.last_at, $4::timestamptz),
  first_at = least(s.first_at, $5::timestamptz)
WHERE s.project_id = $1 AND s.segment = $2
RETURNING s.entries >= ${SEGMENT_ENTRIES}
  AND NOT EXISTS (SELECT FROM search_segments o WHERE o.project_id = $1 AND o.segment > $2) AS is_full`,
  ),
  /**
   * Another segment behind a full one, $2, right behind all entries in it: where the index is behind the log, what was
   * stored since then belongs to the next one, or a segment would have as many more as the index is behind.
   */
  next_segment: MAKE_NEXT_SEGMENT.statement,
} as const

/** What the index has of sessions that are gone. Parameters: $1 project, $2 sessions. */
export const [FORGET_ENTRIES, FORGET_VECTORS] = ['search_entries', 'search_vectors'].map((table) =>
  prepared(
    `forget_${table}`,
    `DELETE FROM ${table} AS n WHERE n.project_id = $1 AND n.session_id = ANY ($2::uuid[])`,
  ),
) as [Statement, Statement]

/** Some rows of each table, where search was switched off. Parameters: $1 project, $2 how many. Rows: one each. */
export const [ERASE_VECTORS, ...ERASE_INDEX] = ['search_vectors', 'search_entries', 'search_segments'].map(
  (table) =>
    prepared(
      `erase_some_${table}`,
      `DELETE FROM ${table} AS t WHERE t.project_id = $1 AND t.ctid = ANY (ARRAY(
  SELECT o.ctid FROM ${table} o WHERE o.project_id = $1 LIMIT $2)) RETURNING 1 AS gone`,
    ),
) as [Statement, ...Statement[]]

/**
 * How far the index is. Row: is_on; is_ready, if it has all that there was when it was switched on, and all that was
 * stored until every node had heard of that: the sessions were looked through twice; what was stored before
 * `indexed_through` is in it; sessions_left of those that are still to be read; user_id; is_refilling. Parameters: $1 project, $2 a
 * user's identifier or null.
 */
export const READ_SEARCH_STATE = prepared(
  'read_search_state',
  fill(sqlFile('search/read_search_state.sql'), {
    indexed_through: timestampText('least(now(), m.marked_at)'),
    heard_s: HEARD_S,
  }),
)

/** Terms of a filter that are looked up, rows of each that are read, and sessions that a search is narrowed to, at most. */
const TERMS_MAX = 16
const TERM_ROWS_MAX = 1_000
const NARROWING_SESSIONS = 200

/**
 * Sessions that a search can be narrowed to: those that may contain configs and be a user's, by the term that fewest
 * have; null if these are many. It leaves it to the search to look at the sessions themselves. Row: sessions. Parameters:
 * $1 project, $2 configs, $3 id of the user or null.
 */
export const FIND_SESSIONS = prepared(
  'find_sessions_to_search',
  fill(sqlFile('search/find_sessions_to_search.sql'), {
    terms_max: TERMS_MAX,
    walked_max: TERM_ROWS_MAX + 1,
    term_rows_max: TERM_ROWS_MAX,
    narrowing_sessions: NARROWING_SESSIONS,
    arms: armsText('w.term'),
  }),
)

export const COUNT_SESSIONS = prepared(
  'count_sessions_to_index',
  'SELECT count(*) AS sessions FROM session_heads h WHERE h.project_id = $1',
)

/** Entries that may match, in the order given. Parameters: $1 project, $2 sessions, $3 seqs. */
export const READ_FOUND = prepared(
  'read_found_entries',
  `
SELECT e.session_id, e.seq, e.kind, e.type, e.role, e.format, ${timestampText('e.occurred_at')} AS occurred_at,
  e.data::text AS data
FROM unnest($2::uuid[], $3::bigint[]) WITH ORDINALITY AS r (session_id, seq, place)
CROSS JOIN LATERAL (
  SELECT o.* FROM entries o
  WHERE o.project_id = $1 AND o.session_id = r.session_id AND o.seq = r.seq AND o.retracted_by IS NULL
    AND ($4::boolean OR o.kind = 'message' OR NOT o.data @> '{"noise":true}') OFFSET 0) e
ORDER BY r.place`,
)
