/**
 * What must not be, each as the rows that show it. The names that stand in FROM are tables, or parts of the
 * statements in verify.ts; $1 is the project.
 */

/** Something that must not be: which rows of the piece it concerns, and how to say what is there. */
export interface Check {
  from: string
  where: string
  session: string
  /** SQL of type text: what in the session or project the finding is about. */
  place: string
  /** SQL of type text: what is there, and what should be. */
  detail: string
}

/** Looked up by primary key for each row, not joined: the whole of a project's table is not read for a piece. */
function missing(table: string, id: string): string {
  return `(SELECT m.id FROM ${table} m WHERE m.project_id = $1 AND m.id = ${id}) IS NULL`
}

/** Rows that a list by their configs, meta or user would not show: the index of terms lacks one of theirs. */
function unlisted(list: string, row: string, document: string): string {
  return `EXISTS (
      SELECT FROM index_terms('${list}', ${row}.${document}, ${row}.user_id) AS i CROSS JOIN LATERAL unnest(i.terms) AS x (term)
      WHERE NOT EXISTS (SELECT FROM list_terms w WHERE w.project_id = $1 AND w.term = x.term
        AND w.created_at = ${row}.created_at AND w.item_id = ${row}.id AND w.signature = i.signature))`
}

const LOG = { from: 'log l', session: 'l.session_id', place: "'seq ' || l.seq" }
const HEAD = { from: 'head h LEFT JOIN sums p ON p.session_id = h.session_id', session: 'h.session_id' }
const UPDATED_AT = {
  entries: "'updated_at ' || l.updated_at || ' is before created_at ' || l.created_at",
  row: "'updated_at ' || t.updated_at || ' is before created_at ' || t.created_at",
}

/** What is checked of sessions and their logs. `log`, `sums`, `head` and `session` are parts of the statement. */
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
      || CASE WHEN l.is_formed THEN '' ELSE ', and a column that its kind must, or must not, have' END`,
  },
  head_last_seq: {
    ...HEAD,
    where: 'h.last_seq <> coalesce(p.last_seq, 0)',
    place: "'last_seq'",
    detail: "'the head says ' || h.last_seq || ', the log ends at ' || coalesce(p.last_seq, 0)",
  },
  head_total_tokens: {
    ...HEAD,
    where: 'h.total_tokens <> coalesce(p.tokens, 0)',
    place: "'total_tokens'",
    detail: "'the head says ' || h.total_tokens || ', the log adds up to ' || coalesce(p.tokens, 0)",
  },
  head_last_message: {
    ...HEAD,
    where: 'h.last_message_id IS DISTINCT FROM p.last_message_id',
    place: "'last_message_id'",
    detail: `'the head says ' || coalesce(h.last_message_id::text, 'null') || ', the last message is '
      || coalesce(p.last_message_id::text, 'null')`,
  },
  head_updated_at: {
    ...HEAD,
    where: 'h.updated_at < p.updated_at',
    place: "'updated_at'",
    detail: "'the head says ' || h.updated_at || ', the log changed at ' || p.updated_at",
  },
  session_without_head: {
    from: 'session s',
    where: 'NOT EXISTS (SELECT FROM head h WHERE h.session_id = s.id)',
    session: 's.id',
    place: "'session_heads'",
    detail: "'no row'",
  },
  session_without_user: {
    from: 'session s',
    where: `s.user_id IS NOT NULL AND ${missing('users', 's.user_id')}`,
    session: 's.id',
    place: "'user_id'",
    detail: "'no user has the id ' || s.user_id",
  },
  session_unlisted: {
    from: 'session s',
    where: unlisted('sessions', 's', 'configs'),
    session: 's.id',
    place: "'list_terms'",
    detail: "'lists that are filtered by its configs or its user do not show it'",
  },
  head_without_session: {
    from: 'head h',
    where: 'NOT EXISTS (SELECT FROM session s WHERE s.id = h.session_id)',
    session: 'h.session_id',
    place: "'sessions'",
    detail: "'no row'",
  },
  entries_without_session: {
    from: 'sums p',
    where: `NOT EXISTS (SELECT FROM head h WHERE h.session_id = p.session_id)
      AND NOT EXISTS (SELECT FROM session s WHERE s.id = p.session_id)`,
    session: 'p.session_id',
    place: "'entries'",
    detail: "p.entries || ' entries of a session that does not exist'",
  },
} as const satisfies Record<string, Check>

const SPACE = { from: 'space t', session: 'NULL' }
/** What is checked of learning spaces; `space` is a part of the statement. */
export const SPACE_CHECKS = {
  learning_space_without_user: {
    ...SPACE,
    where: `t.user_id IS NOT NULL AND ${missing('users', 't.user_id')}`,
    place: "'learning space ' || t.id",
    detail: "'no user has the id ' || t.user_id",
  },
  learning_space_unlisted: {
    ...SPACE,
    where: unlisted('learning_spaces', 't', 'meta'),
    place: "'learning space ' || t.id",
    detail: "'lists that are filtered by its meta or its user do not show it'",
  },
  learning_space_times: {
    ...SPACE,
    where: 't.updated_at < t.created_at',
    place: "'learning space ' || t.id",
    detail: UPDATED_AT.row,
  },
} as const satisfies Record<string, Check>

const KEY = { from: 'remembered k', session: 'k.owner_id', place: "'key ' || to_json(k.key)::text" }
/** What is checked of idempotency keys; `remembered` is a part of the statement. */
export const KEY_CHECKS = {
  key_without_owner: {
    ...KEY,
    where: `${missing('sessions', 'k.owner_id')} AND ${missing('learning_spaces', 'k.owner_id')}`,
    detail: "'what it was used for does not exist'",
  },
  key_seqs: {
    ...KEY,
    where: `k.seqs IS NOT NULL AND cardinality(k.seqs) <> (
      SELECT count(DISTINCT e.seq) FROM entries e
      WHERE e.project_id = $1 AND e.session_id = k.owner_id AND e.seq = ANY (k.seqs))`,
    detail: "'it stands for seqs ' || array_to_string(k.seqs, ', ') || ', and not all of these exist'",
  },
  key_malformed: {
    ...KEY,
    where: '(k.seqs IS NULL) = (k.answer IS NULL) OR cardinality(k.seqs) = 0',
    detail: "'it must have either seqs or an answer'",
  },
} as const satisfies Record<string, Check>

/** The names of all that is checked; `project_missing` and `token_without_project` need no piece. */
export type CheckName =
  | keyof typeof SESSION_CHECKS
  | keyof typeof SPACE_CHECKS
  | keyof typeof KEY_CHECKS
  | 'project_missing'
  | 'token_without_project'
