import { MARKS_WAIT } from '../changes/change_queries.js'
import { SCANS_WAIT } from '../changes/project_consumer_queries.js'
import type { Table } from '../lifecycle/table.js'
import { ODD, ORPHAN } from '../lifecycle/verify/check.js'

const REBUILT = 'Write to the session, such as its configs again unchanged: this puts it into the order again'
const ORDERED = "SELECT FROM project_consumers c WHERE c.project_id = $1 AND c.consumer = 'last_activity'"

/** What goes with the project; what belongs to a session has gone with it before: see ERASE_SESSIONS. */
const DERIVED = { erased_with: 'project', counted: false, exported: false, is_derived: true } as const

/** What work in the background has still to do, what consumers of changes keep, and the order of sessions by their last activity. */
export const CHANGE_TABLES: readonly Table[] = [
  {
    ...DERIVED,
    name: 'token_recounts',
    kind: 'recount',
    key: ['session_id'],
    columns: { session_id: 'uuid' },
    checks: {},
  },
  {
    ...DERIVED,
    name: 'project_consumers',
    kind: 'consumer',
    key: ['consumer'],
    columns: { consumer: 'text' },
    checks: {},
    waits: SCANS_WAIT,
  },
  {
    ...DERIVED,
    // Those of a session that is gone wait for their consumer, and those of a retired one until it is switched on again.
    name: 'change_marks',
    kind: 'mark',
    key: ['session_id', 'consumer'],
    columns: { session_id: 'uuid', consumer: 'text' },
    checks: {},
    waits: MARKS_WAIT,
  },
  {
    ...DERIVED,
    name: 'session_activity',
    kind: 'activity',
    key: ['session_id'],
    columns: { session_id: 'uuid' },
    erased_with: 'session',
    checks: {
      activity_unlisted: {
        session: 't.session_id',
        place: "'activity_terms'",
        where: `EXISTS (SELECT FROM unnest(t.terms) AS x (term) WHERE NOT EXISTS (
      SELECT FROM activity_terms i
      WHERE i.project_id = $1 AND i.term = x.term AND i.active_at = t.active_at AND i.session_id = t.session_id OFFSET 0))`,
        detail: "'lists by last activity omit it'",
        means: 'lists by last activity omit a session',
        todo: REBUILT,
      },
      activity_without_consumer: {
        session: 't.session_id',
        place: "'session_activity'",
        where: `NOT EXISTS (${ORDERED})`,
        detail: "'nothing keeps this row up to date'",
        means: 'a place in an order that the project does not keep',
        todo: ODD,
      },
    },
  },
  {
    ...DERIVED,
    name: 'activity_terms',
    kind: 'activity_term',
    key: ['term', 'active_at', 'session_id'],
    columns: { term: 'bigint', active_at: 'time', session_id: 'uuid' },
    checks: {
      activity_term_stray: {
        session: 't.session_id',
        place: "'activity_terms'",
        where: `NOT EXISTS (SELECT FROM session_activity a WHERE a.project_id = $1 AND a.session_id = t.session_id
      AND a.active_at = t.active_at AND t.term = ANY (a.terms) OFFSET 0)`,
        detail: "'lists by last activity show it at ' || t.active_at || ' as well'",
        means: 'lists by last activity show a session twice, or one that does not exist',
        todo: ORPHAN,
      },
    },
  },
]

/**
 * SQL: whether the order of the project is complete. It is not held to be so before the last look at what nodes may
 * have written that did not know of it.
 */
const IS_ORDERED = `EXISTS (${ORDERED} AND c.retired_at IS NULL AND c.scan_at > c.scanned_at + interval '1 hour')`

/** For a check of sessions `w` with their heads: not at its place in the order, and nobody will move it there. */
export const ACTIVITY_CHECK = {
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
export const SEARCH_CHECK = {
  means: 'searches do not find entries that were indexed',
  todo: 'Switch search off for the project, and on again: this indexes everything anew',
  place: "'search_entries'",
  where: `w.id IS NOT NULL AND w.has_head
      AND (SELECT u.seq FROM change_cursors u WHERE u.project_id = $1 AND u.session_id = w.id AND u.consumer = 'search')
        > (SELECT coalesce(sum(i.last_seq - i.seq + 1), 0) FROM search_entries i WHERE i.project_id = $1 AND i.session_id = w.id)`,
  detail: "'the index has fewer entries of it than were read'",
}
