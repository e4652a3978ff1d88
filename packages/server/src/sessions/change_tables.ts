import { MARKS_WAIT } from '@annals/kits/changes/change_queries.js'
import { SCANS_WAIT } from '@annals/kits/changes/project_consumer_queries.js'
import { ODD, ORPHAN, type Table } from '@annals/kits/lifecycle/table.js'

export const REBUILT =
  'Write to the session, such as its configs again unchanged: this puts it into the order again'
/** SQL of a project's consumer that keeps that order. */
export const ORDERED =
  "SELECT FROM project_consumers c WHERE c.project_id = $1 AND c.consumer = 'last_activity'"

/** Erased with the project; a session's own rows have gone with it before: see ERASE_SESSIONS. */
const DERIVED = { erased_with: 'project', counted: false, exported: false, is_derived: true } as const

/** Queues of background work, the state of consumers, and the order of sessions by their last activity. */
export const CHANGE_TABLES: readonly Table[] = [
  {
    ...DERIVED,
    // Written and deleted with the rows of the tables that have a `document`.
    name: 'list_terms',
    kind: 'list_term',
    key: ['term', 'created_at', 'item_id'],
    columns: { term: 'bigint', created_at: 'time', item_id: 'uuid' },
    checks: {},
  },
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
    checks: {
      consumer_unmarked: {
        place: "'project_consumers, ' || t.consumer",
        where: `t.retired_at IS NULL AND NOT EXISTS (
      SELECT FROM projects p WHERE p.id = $1 AND t.consumer = ANY (p.consumers))`,
        detail: "'projects.consumers lacks it'",
        means: 'what is written is indexed, sent or learnt only after a day',
        todo: "Something other than Annals wrote here. Add the consumer's name to `consumers` of the project's row in `projects`",
      },
    },
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
