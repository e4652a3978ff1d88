/**
 * Everything that must not be, each as a query for the rows that show it. The names after FROM are tables, or parts
 * of the statements in verify_queries.ts; $1 is the project.
 */

/** Something that must not be: which rows of the piece it concerns, and how to describe it. */
export interface Check {
  from: string
  where: string
  session: string
  /** SQL of type text: the place in the session or project. */
  place: string
  /** SQL of type text: what is stored, and what should be. */
  detail: string
}

/** Looked up by primary key for each row instead of joined, so that a piece does not read a project's whole table. */
function missing(table: string, id: string): string {
  return `(SELECT m.id FROM ${table} m WHERE m.project_id = $1 AND m.id = ${id}) IS NULL`
}

/**
 * Rows that a list by configs, meta or user would miss, because the index of terms lacks one of theirs. Each term is
 * looked up by its complete key instead of joined: a join may drop the term from the search, and then reads the index
 * of all the project's terms for each row.
 */
function unlisted(row: string): string {
  return `EXISTS (SELECT FROM unnest(${row}.terms) AS x (term) WHERE ${row}.signature IS DISTINCT FROM (
      SELECT i.signature FROM list_terms i
      WHERE i.project_id = $1 AND i.term = x.term AND i.created_at = ${row}.created_at AND i.item_id = ${row}.id))`
}

const LOG = { from: 'log l', session: 'l.session_id', place: "'seq ' || l.seq" }
const SESSION = { from: 'whole w', session: 'w.session_id' }
const UPDATED_AT = {
  entries: "'updated_at ' || l.updated_at || ' is before created_at ' || l.created_at",
  row: "'updated_at ' || t.updated_at || ' is before created_at ' || t.created_at",
}

/** Checks of sessions and their logs. `log` and `whole` are parts of the statement. */
export const SESSION_CHECKS = {
  seq_gap: {
    ...LOG,
    where: 'l.seq <> coalesce(l.seq_before, 0) + 1',
    detail:
      "CASE WHEN l.seq_before IS NULL THEN 'the log begins here' ELSE 'follows seq ' || l.seq_before END",
  },
  created_at_decreases: {
    ...LOG,
    where: 'l.created_at < l.created_at_before',
    detail: "'created_at ' || l.created_at || ' follows ' || l.created_at_before",
  },
  updated_before_created: { ...LOG, where: 'l.updated_at < l.created_at', detail: UPDATED_AT.entries },
  parent_wrong: {
    ...LOG,
    where: "l.parent_id IS DISTINCT FROM CASE WHEN l.kind = 'message' THEN l.id_before END",
    detail: `'parent_id is ' || coalesce(l.parent_id::text, 'null') || ', expected '
      || CASE WHEN l.kind = 'message' THEN coalesce(l.id_before::text, 'null') ELSE 'null' END`,
  },
  entry_malformed: {
    ...LOG,
    where: `NOT l.is_formed OR l.seq < 1 OR l.bytes < 2 OR l.tokens < 0 OR (l.kind = 'event' AND l.tokens <> 0)`,
    detail: `'kind ' || l.kind || ', bytes ' || l.bytes || ', tokens ' || l.tokens
      || CASE WHEN l.is_formed THEN '' ELSE ', and a column is set or missing against its kind' END`,
  },
  head_last_seq: {
    ...SESSION,
    where: 'w.last_seq <> w.entries_last_seq',
    place: "'last_seq'",
    detail: "'the head says ' || w.last_seq || ', the log ends at ' || w.entries_last_seq",
  },
  head_total_tokens: {
    ...SESSION,
    where: 'w.total_tokens <> w.entries_tokens',
    place: "'total_tokens'",
    detail: "'the head says ' || w.total_tokens || ', the log adds up to ' || w.entries_tokens",
  },
  head_bytes: {
    ...SESSION,
    // Entries appended by an older version are counted later: see COUNT_BYTES.
    where: 'w.counted > w.last_seq OR (w.counted = w.last_seq AND w.bytes <> w.entries_bytes)',
    place: "'bytes'",
    detail:
      "'the head says ' || w.bytes || ' of ' || w.counted || ' entries, the log adds up to ' || w.entries_bytes",
  },
  head_last_message: {
    ...SESSION,
    where: 'w.has_head AND w.last_message_id IS DISTINCT FROM w.entries_last_message_id',
    place: "'last_message_id'",
    detail: `'the head says ' || coalesce(w.last_message_id::text, 'null') || ', the last message is '
      || coalesce(w.entries_last_message_id::text, 'null')`,
  },
  head_updated_at: {
    ...SESSION,
    where: 'w.updated_at < w.entries_updated_at',
    place: "'updated_at'",
    detail: "'the head says ' || w.updated_at || ', the log changed at ' || w.entries_updated_at",
  },
  session_without_head: {
    ...SESSION,
    where: 'w.id IS NOT NULL AND NOT w.has_head',
    place: "'session_heads'",
    detail: "'no row'",
  },
  session_without_user: {
    ...SESSION,
    where: `w.user_id IS NOT NULL AND ${missing('users', 'w.user_id')}`,
    place: "'user_id'",
    detail: "'no user has the id ' || w.user_id",
  },
  session_unlisted: {
    ...SESSION,
    where: unlisted('w'),
    place: "'list_terms'",
    detail: "'lists filtered by its configs or its user omit it'",
  },
  head_without_session: {
    ...SESSION,
    where: 'w.has_head AND w.id IS NULL',
    place: "'sessions'",
    detail: "'no row'",
  },
  entries_without_session: {
    ...SESSION,
    where: 'w.id IS NULL AND NOT w.has_head',
    place: "'entries'",
    detail: "w.entries || ' entries of a session that does not exist'",
  },
} as const satisfies Record<string, Check>

const SPACE = { from: 'space t', session: 'NULL' }
/** Checks of learning spaces; `space` is a part of the statement. */
export const SPACE_CHECKS = {
  learning_space_without_user: {
    ...SPACE,
    where: `t.user_id IS NOT NULL AND ${missing('users', 't.user_id')}`,
    place: "'learning space ' || t.id",
    detail: "'no user has the id ' || t.user_id",
  },
  learning_space_unlisted: {
    ...SPACE,
    where: unlisted('t'),
    place: "'learning space ' || t.id",
    detail: "'lists filtered by its meta or its user omit it'",
  },
  learning_space_times: {
    ...SPACE,
    where: 't.updated_at < t.created_at',
    place: "'learning space ' || t.id",
    detail: UPDATED_AT.row,
  },
} as const satisfies Record<string, Check>

const KEY = { from: 'remembered k', session: 'k.owner_id', place: "'key ' || to_json(k.key)::text" }
/** Checks of idempotency keys; `remembered` is a part of the statement. */
export const KEY_CHECKS = {
  key_without_owner: {
    ...KEY,
    where: `${missing('sessions', 'k.owner_id')} AND ${missing('learning_spaces', 'k.owner_id')}`,
    detail: "'the resource that it was used for does not exist'",
  },
  key_seqs: {
    ...KEY,
    where: `k.seqs IS NOT NULL AND cardinality(k.seqs) <> (
      SELECT count(DISTINCT e.seq) FROM entries e
      WHERE e.project_id = $1 AND e.session_id = k.owner_id AND e.seq = ANY (k.seqs))`,
    detail: "'it has the seqs ' || array_to_string(k.seqs, ', ') || ', and not all of these exist'",
  },
  key_malformed: {
    ...KEY,
    where: '(k.seqs IS NULL) = (k.answer IS NULL) OR cardinality(k.seqs) = 0',
    detail: "'it must have either seqs or an answer'",
  },
} as const satisfies Record<string, Check>

/** The names of all checks; `project_missing` and `token_without_project` need no piece. */
export type CheckName =
  | keyof typeof SESSION_CHECKS
  | keyof typeof SPACE_CHECKS
  | keyof typeof KEY_CHECKS
  | 'project_missing'
  | 'token_without_project'
