import { passStatements } from '@annals/kits/changes/project_pass.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { fill, sqlFile, storedFunctionIn } from '@annals/kits/postgres/stored_function.js'
import { SCOPES } from '../find_entries_queries.js'

/** Segments that are looked through, the newest ones, at most: eight million entries. */
const SEGMENTS_MAX = 512
/** Segments that tell how frequent a word is: the newest ones. */
const SAMPLED_SEGMENTS = 2
/** So many times as many segments are searched for runs that have several frequent words, where too few have them. */
const MORE_SEGMENTS = 8
/** None after so many, and not for more words than these: each runs through the index by itself. */
const TOGETHER_SEGMENTS = 64
const TOGETHER_WORDS = 12
/** Words of a question are in the same run so many times as often as words that have nothing to do with each other, at most. */
const MORE_TOGETHER = 8
const RUN_ENTRIES = 16
/** One in so many runs of the table, at least, is of a project that has most of it. */
const MOST_OF_TABLE = 4
/** Words that are looked up whatever the time: the rarest ones. On a busy machine, a question would find nothing. */
const ALWAYS_WORDS = 2
/** And this many where nothing was found so far: the rarest words of a question may be those that nobody has said. */
const LATE_WORDS = 8

/** Parameters: $1 project, $2 scopes to have one of, $3 to have all of, each of them or null, $4 words, $5 from, $6 to, $7 how many. */
const FIND_RUNS = `SELECT array_agg(f.session_id), array_agg(f.seq), count(*) FROM (
  SELECT c.session_id, c.seq FROM search_entries c
  WHERE c.project_id = $1 AND ($2 IS NULL OR ${SCOPES} && $2) AND ($3 IS NULL OR ${SCOPES} @> $3) AND c.words::tsvector @@ $4
    AND c.last_at >= $5 AND c.first_at <= $6
  ORDER BY c.last_at DESC LIMIT $7) f`

/** Parameters: $1 project, $2 scopes to have one of, $3 to have all of, or null, $4 words, or null for all runs. */
const COUNT_RUNS = `SELECT count(*) FROM search_entries c
  WHERE c.project_id = $1 AND ${SCOPES} && $2 AND ($3 IS NULL OR ${SCOPES} @> $3) AND ($4 IS NULL OR c.words::tsvector @@ $4)`

export const FIND_RUNS_TO_RECALL = storedFunctionIn('search/recall/find_runs_to_recall.sql', {
  run_entries: RUN_ENTRIES,
  most_of_table: MOST_OF_TABLE,
  segments_max: SEGMENTS_MAX,
  sampled_segments: SAMPLED_SEGMENTS,
  count_runs: COUNT_RUNS,
  find_runs: FIND_RUNS,
  more_segments: MORE_SEGMENTS,
  together_segments: TOGETHER_SEGMENTS,
  together_words: TOGETHER_WORDS,
  more_together: MORE_TOGETHER,
  always_words: ALWAYS_WORDS,
  late_words: LATE_WORDS,
})

/** Bytes of entries that are read at once, from the first on: none after these, whatever a caller stored. */
const READ_BYTES_MAX = 4 * 1024 * 1024

/**
 * Entries that a question may be answered with, if they are there to be found: not retracted, of no session that has
 * expired, and in all filters. Parameters: $1 project, $2 sessions, $3 seqs, $4 kind, $5 type, $6 role, $7 user's id,
 * $8 configs, $9 from, $10 to, each of these null or a value. Rows in any order.
 */
export const READ_RECALLED = prepared(
  'read_recalled_entries',
  fill(sqlFile('search/recall/read_recalled.sql'), {
    created_at: timestampText('i.created_at'),
    occurred_at: timestampText('i.occurred_at'),
    bytes_max: READ_BYTES_MAX,
  }),
)

/** Words of runs. Parameters: $1 project, $2 sessions, $3 seqs. Rows in any order. */
export const READ_RUN_WORDS = prepared(
  'read_words_of_runs',
  `
SELECT c.session_id, c.seq, c.words
FROM unnest($2::uuid[], $3::bigint[]) AS r (session_id, seq)
CROSS JOIN LATERAL (
  SELECT o.session_id, o.seq, o.words FROM search_entries o
  WHERE o.project_id = $1 AND o.session_id = r.session_id AND o.seq = r.seq OFFSET 0) c`,
)

/** Messages of a session that its title is looked for in. */
const TITLE_SEQ_MAX = 16
const TITLE_BYTES_MAX = 32 * 1024

/**
 * Titles of sessions: from their configs, or else the first thing that a user said. Parameters: $1 project,
 * $2 sessions. Rows: session_id, created_at, title; format and data of the message.
 */
export const READ_TITLES = prepared(
  'read_titles_of_sessions',
  fill(sqlFile('search/recall/read_titles.sql'), {
    created_at: timestampText('s.created_at'),
    seq_max: TITLE_SEQ_MAX,
    bytes_max: TITLE_BYTES_MAX,
  }),
)

/** Writes lines anew: projects of which an older version wrote some. */
export const REFILL_PASS = passStatements({
  table: 'search_refills',
  name: 'search_refill',
  counts: 'entries_done',
})

/** Parameters of each: $1 project. */
export const REFILL = {
  /** The next runs. $2 session and $3 seq to begin after, $4 how many. Rows: session_id, seq, last_seq. */
  runs: prepared(
    'read_runs_to_refill',
    `SELECT c.session_id, c.seq, c.last_seq FROM search_entries c
WHERE c.project_id = $1 AND (c.session_id, c.seq) > ($2, $3) ORDER BY c.session_id, c.seq LIMIT $4`,
  ),
  /** Writes lines anew of runs that are as they were. $2 sessions, $3 seqs, $4 last seqs, $5 words. Rows: one each. */
  write: prepared(
    'refill_runs',
    `UPDATE search_entries AS c SET words = r.words
FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[]) AS r (session_id, seq, last_seq, words)
WHERE c.project_id = $1 AND c.session_id = r.session_id AND c.seq = r.seq AND c.last_seq = r.last_seq RETURNING 1 AS done`,
  ),
  /** How far it is. Row: entries_done, entries, while it is not done. */
  progress: prepared(
    'read_search_refill',
    `SELECT r.entries_done,
  (SELECT coalesce(sum(s.entries), 0) FROM search_segments s WHERE s.project_id = $1) AS entries
FROM search_refills r WHERE r.project_id = $1`,
  ),
} as const
