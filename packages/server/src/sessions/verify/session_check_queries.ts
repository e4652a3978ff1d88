import {
  type Check,
  HEAD,
  LOST,
  missing,
  notErased,
  ODD,
  ORPHAN,
  UNLISTED,
  unlisted,
} from '../../lifecycle/verify/check.js'
import { timestampText } from '../../lists/resource_json.js'
import { digestText } from '../../log/read/compaction_queries.js'
import { bySeq } from '../../log/read/read_queries.js'
import { ACTIVITY_CHECK, SEARCH_CHECK } from '../change_tables.js'
import { expiryText } from '../expiry_queries.js'

const LOG = { from: 'log l', session: 'l.session_id', place: "'seq ' || l.seq" }
const SESSION = { from: 'whole w', session: 'w.session_id' }
const UPDATED_AT = {
  entries: "'updated_at ' || l.updated_at || ' is before created_at ' || l.created_at",
}

/** Checks of sessions and their logs. `log` and `whole` are parts of the statement. */
export const SESSION_CHECKS = {
  seq_gap: {
    means: 'seqs are not 1, 2, 3, …',
    todo: LOST,
    ...LOG,
    where: 'l.seq <> coalesce(l.seq_before, 0) + 1',
    detail:
      "CASE WHEN l.seq_before IS NULL THEN 'the log begins here' ELSE 'follows seq ' || l.seq_before END",
  },
  created_at_decreases: {
    means: 'an entry is older than the one before it',
    todo: ODD,
    ...LOG,
    where: 'l.created_at < l.created_at_before',
    detail: "'created_at ' || l.created_at || ' follows ' || l.created_at_before",
  },
  updated_before_created: {
    means: 'an entry was changed before it was created',
    todo: ODD,
    ...LOG,
    where: 'l.updated_at < l.created_at',
    detail: UPDATED_AT.entries,
  },
  parent_wrong: {
    means: 'parent_id is not the previous message',
    todo: LOST,
    ...LOG,
    where: "l.parent_id IS DISTINCT FROM CASE WHEN l.kind = 'message' THEN l.id_before END",
    detail: `'parent_id is ' || coalesce(l.parent_id::text, 'null') || ', expected '
      || CASE WHEN l.kind = 'message' THEN coalesce(l.id_before::text, 'null') ELSE 'null' END`,
  },
  entry_malformed: {
    means: 'an entry lacks fields of its kind, or has impossible sizes',
    todo: LOST,
    ...LOG,
    where: `NOT l.is_formed OR l.seq < 1 OR l.bytes < 2 OR l.tokens < 0 OR (l.kind = 'event' AND l.tokens <> 0)`,
    detail: `'kind ' || l.kind || ', bytes ' || l.bytes || ', tokens ' || l.tokens
      || CASE WHEN l.is_formed THEN '' ELSE ', and a column is set or missing against its kind' END`,
  },
  blob_unreferenced: {
    means: 'an entry names a blob that is not kept for it',
    todo: LOST,
    ...LOG,
    where: `EXISTS (
      SELECT FROM jsonb_array_elements_text(l.blobs) AS x (sha256) WHERE NOT EXISTS (
        SELECT FROM blob_references r
        WHERE r.project_id = $1 AND r.owner_id = l.session_id AND r.seq = l.seq AND r.sha256 = x.sha256))`,
    detail: "'it names ' || l.blobs::text",
  },
  retraction_mark: {
    from: 'mark m',
    session: 'm.session_id',
    where: 'm.retracted_by IS DISTINCT FROM m.retraction_seq',
    place: "'seq ' || m.seq",
    detail: `coalesce('retracted_by is ' || m.retracted_by || ', and no such retraction names it',
      'the retraction at seq ' || m.retraction_seq || ' names it, and it is not marked so')`,
    means:
      'An entry is marked as retracted by no retraction, or a retraction names an entry that is not marked.',
    todo: 'Rows were changed outside Annals. Export the session in its current state, and restore it from a backup.',
  },
  compaction_outdated: {
    from: 'compaction c',
    session: 'c.session_id',
    // The newest covers what all others do.
    where: `(c.is_newest AND c.digest IS DISTINCT FROM ${digestText('$1', 'c.session_id', 'c.from_seq', 'c.to_seq')})
      OR c.from_seq > c.to_seq OR c.to_seq >= c.seq OR EXISTS (
        SELECT FROM log l WHERE l.session_id = c.session_id AND l.retracted_by > c.seq AND l.seq BETWEEN c.from_seq AND c.to_seq)`,
    place: "'seq ' || c.seq",
    detail: "'it covers seq ' || c.from_seq || ' to ' || c.to_seq || ', which is not what it was'",
    means: 'A summary stands for entries that have changed or were retracted since.',
    todo: 'Rows were changed outside Annals. Retract the compaction, so that contexts do without it.',
  },
  head_last_seq: {
    means: 'the last seq of the head is not that of the log',
    todo: HEAD,
    ...SESSION,
    where: 'w.last_seq <> w.entries_last_seq',
    place: "'last_seq'",
    detail: "'the head says ' || w.last_seq || ', the log ends at ' || w.entries_last_seq",
  },
  head_total_tokens: {
    means: 'the tokens of the head are not those of the log',
    todo: HEAD,
    ...SESSION,
    where: 'w.total_tokens <> w.entries_tokens',
    place: "'total_tokens'",
    detail: "'the head says ' || w.total_tokens || ', the log adds up to ' || w.entries_tokens",
  },
  head_bytes: {
    means: 'the bytes of the head are not those of the log',
    todo: HEAD,
    ...SESSION,
    // Entries appended by an older version are counted later: see COUNT_BYTES.
    where: 'w.counted > w.last_seq OR (w.counted = w.last_seq AND w.bytes <> w.entries_bytes)',
    place: "'bytes'",
    detail:
      "'the head says ' || w.bytes || ' of ' || w.counted || ' entries, the log adds up to ' || w.entries_bytes",
  },
  head_last_message: {
    means: 'the head names another last message',
    todo: HEAD,
    ...SESSION,
    where: 'w.has_head AND w.last_message_id IS DISTINCT FROM w.entries_last_message_id',
    place: "'last_message_id'",
    detail: `'the head says ' || coalesce(w.last_message_id::text, 'null') || ', the last message is '
      || coalesce(w.entries_last_message_id::text, 'null')`,
  },
  head_updated_at: {
    means: 'the session was changed after its updated_at',
    todo: HEAD,
    ...SESSION,
    where: 'w.updated_at < w.entries_updated_at',
    place: "'updated_at'",
    detail: "'the head says ' || w.updated_at || ', the log changed at ' || w.entries_updated_at",
  },
  session_activity_behind: { ...SESSION, ...ACTIVITY_CHECK },
  session_unsearched: { ...SESSION, ...SEARCH_CHECK },
  session_without_head: {
    means: 'a session that can be neither read nor written',
    todo: HEAD,
    ...SESSION,
    where: 'w.id IS NOT NULL AND NOT w.has_head',
    place: "'session_heads'",
    detail: "'no row'",
  },
  session_without_user: {
    means: "a session's user does not exist",
    todo: LOST,
    ...SESSION,
    where: `w.user_id IS NOT NULL AND ${missing('users', 'w.user_id')}`,
    place: "'user_id'",
    detail: "'no user has the id ' || w.user_id",
  },
  session_without_parent: {
    means: "a session's parent does not exist",
    todo: 'If the session was imported without its parent, import that. Otherwise rows were changed outside Annals: delete the session, or restore its parent from a backup.',
    ...SESSION,
    where: `w.parent_id IS NOT NULL AND ${notErased('w.parent_id')} AND ${missing('sessions', 'w.parent_id')}`,
    place: "'parent_id'",
    detail: "'no session has the id ' || w.parent_id",
  },
  session_expiry: {
    means: 'a session would be deleted too late, or although it never expires',
    todo: 'Set its `expires_in_s` again with `PATCH /session/{id}`.',
    ...SESSION,
    where: `(w.expires_in_s IS NULL) <> (w.expiry_due_at IS NULL)
      OR w.expiry_due_at > ${expiryText('greatest(now(), w.updated_at)', 'w.expires_in_s')}`,
    place: "'expiry_due_at'",
    detail: `'expires_in_s is ' || coalesce(w.expires_in_s::text, 'null')
      || ', and it is looked at again at ' || coalesce(${timestampText('w.expiry_due_at')}, 'no time')`,
  },
  session_unlisted: {
    means: 'filtered lists omit a session',
    todo: UNLISTED,
    ...SESSION,
    where: unlisted('w'),
    place: "'list_terms'",
    detail: "'lists filtered by its configs or its user omit it'",
  },
  head_without_session: {
    means: 'a head of a session that does not exist',
    todo: ORPHAN,
    ...SESSION,
    where: 'w.has_head AND w.id IS NULL',
    place: "'sessions'",
    detail: "'no row'",
  },
  entries_without_session: {
    means: 'entries of a session that does not exist',
    todo: ORPHAN,
    ...SESSION,
    where: 'w.id IS NULL AND NOT w.has_head',
    place: "'entries'",
    detail: "w.entries || ' entries of a session that does not exist'",
  },
} as const satisfies Record<string, Check>

/** What is checked of idempotency keys beside that their owners exist. */
export const KEY_CHECKS = {
  key_seqs: {
    place: "'key ' || to_json(t.key)::text",
    session: 't.owner_id',
    where: `t.seqs IS NOT NULL AND cardinality(t.seqs) <> (
      SELECT count(e.seq) FROM (SELECT DISTINCT s.seq FROM unnest(t.seqs) AS s (seq)) x CROSS JOIN LATERAL (
        SELECT o.seq FROM entries o WHERE o.project_id = $1 AND o.session_id = t.owner_id AND ${bySeq('o', 'x.seq')}) e)`,
    detail: "'it has the seqs ' || array_to_string(t.seqs, ', ') || ', and not all of these exist'",
    means: 'an idempotency key of entries that do not exist',
    todo: LOST,
  },
  key_malformed: {
    place: "'key ' || to_json(t.key)::text",
    session: 't.owner_id',
    where: '(t.seqs IS NULL) = (t.answer IS NULL) OR cardinality(t.seqs) = 0',
    detail: "'it must have either seqs or an answer'",
    means: 'an idempotency key without entries or an answer',
    todo: ORPHAN,
  },
} as const satisfies Record<string, Check>
