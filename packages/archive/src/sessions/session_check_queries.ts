import { type Check, LOST, missing, notErased, ODD, ORPHAN } from '@annals/kits/lifecycle/table.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { digestText } from 'annals/dist/log/read/compaction_queries.js'
import { ORDERED, REBUILT } from 'annals/dist/sessions/change_tables.js'
import { expiryText } from 'annals/dist/sessions/expiry_queries.js'
import { ARE_CALLS_KEPT, CALLS_CONSUMER, READ_ANEW } from 'annals/dist/tools/tool_queries.js'
import { UNLISTED, unlisted } from '../verify/findings.js'

const HEAD =
  'The log is right and the head is wrong: something other than Annals wrote here, or a restore was incomplete. Rebuild the head'

const LOG = { from: 'log l', session: 'l.session_id', place: "'seq ' || l.seq" }
const SESSION = { from: 'whole w', session: 'w.session_id' }
const UPDATED_AT = {
  entries: "'updated_at ' || l.updated_at || ' is before created_at ' || l.created_at",
}

/**
 * SQL: whether the order of the project is complete. It is not held to be so before the last look at what nodes may
 * have written that did not know of it.
 */
const IS_ORDERED = `EXISTS (${ORDERED} AND c.retired_at IS NULL AND c.scan_at > c.scanned_at + interval '1 hour')`

/** For a check of sessions `w` with their heads: not at its place in the order, and nobody will move it there. */
const ACTIVITY_CHECK = {
  means:
    'lists by last activity show a session at a wrong place, and it has no mark by which it would be moved',
  todo: REBUILT,
  place: "'session_activity'",
  where: `${IS_ORDERED} AND w.id IS NOT NULL AND w.has_head
      AND date_trunc('second', w.updated_at, 'UTC') IS DISTINCT FROM (
        SELECT a.active_at FROM session_activity a WHERE a.project_id = $1 AND a.session_id = w.id)
      AND NOT EXISTS (SELECT FROM change_marks m
        WHERE m.project_id = $1 AND m.session_id = w.id AND m.consumer = 'last_activity' OFFSET 0)`,
  detail: "'its updated_at is ' || w.updated_at",
}

/** For the same: entries that the index of words lacks, though its cursor says that it has read them. */
const SEARCH_CHECK = {
  means: 'searches do not find entries that were indexed',
  todo: 'Switch search off for the project, and on again: this indexes everything anew',
  place: "'search_entries'",
  where: `w.id IS NOT NULL AND w.has_head
      AND (SELECT u.seq FROM change_cursors u WHERE u.project_id = $1 AND u.session_id = w.id AND u.consumer = 'search')
        > (SELECT coalesce(sum(i.last_seq - i.seq + 1), 0) FROM search_entries i WHERE i.project_id = $1 AND i.session_id = w.id)`,
  detail: "'the index has fewer entries of it than were read'",
}

/** For the same: what was read of a session for the figures of tools, and for the console. */
const READING_CHECK = {
  means: 'figures of tools lack the calls of a session, and the console does not show what it was asked',
  todo: READ_ANEW,
  place: "'session_readings'",
  where: `w.id IS NOT NULL AND w.has_head AND ${ARE_CALLS_KEPT}
      AND EXISTS (SELECT FROM change_cursors u
        WHERE u.project_id = $1 AND u.session_id = w.id AND u.consumer = '${CALLS_CONSUMER}' AND u.seq > 0 OFFSET 0)
      AND NOT EXISTS (SELECT FROM session_readings r WHERE r.project_id = $1 AND r.session_id = w.id OFFSET 0)`,
  detail: "'its log was read, and there is no row'",
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
  retraction_floor: {
    ...LOG,
    where: 'l.live_before > l.live_seq',
    detail: `'live_seq is ' || l.live_seq || ', and seq ' || l.live_before || ' before it is not retracted'`,
    means: 'retracting the newest entries would pass over one',
    todo: "Rows were changed outside Annals. Set this entry's live_seq to null: it is not known then, and entries are read one by one.",
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
  head_retraction: {
    means: 'the head names another newest retraction, or another entry before it',
    todo: HEAD,
    ...SESSION,
    // Null: not known, as in a log that was copied or imported.
    where: `w.retraction_seq IS NOT NULL
      AND (w.retraction_seq IS DISTINCT FROM w.entries_retraction_seq OR w.live_seq < w.entries_live_seq)`,
    place: "'retraction_seq'",
    detail: `'the head says ' || w.retraction_seq || ' and ' || w.live_seq || ', the log ' || coalesce(w.entries_retraction_seq::text, 'none')
      || ' and ' || coalesce(w.entries_live_seq, 0)`,
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
  session_unread: { ...SESSION, ...READING_CHECK },
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
