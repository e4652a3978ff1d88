import { allOf } from '@annals/kits/http/operation.js'
import { BLOBS_OF_ENTRY, LOST, ORPHAN, type Table } from '@annals/kits/lifecycle/table.js'
import type { Module, OpenModule } from '@annals/kits/module.js'
import { functionsIn } from '@annals/kits/postgres/stored_function.js'
import { LOG_MODULE } from '../log/module.js'
import { byId } from '../log/read/read_queries.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import * as queries from './run_queries.js'
import type { RunParts } from './runs.js'

const RELISTED =
  'Something other than Annals wrote here. Export the project and import it into another one, which lists it anew'

const DUE_AT_ONCE = `EXISTS (SELECT FROM {session_inbox} i WHERE i.project_id = t.project_id AND i.session_id = t.session_id
  AND i.withdrawn_at IS NULL AND ${queries.dueAtOnceText('i')})`

/** Leases are not exported: the runner of a restored session takes a new one, with a higher fence. */
const RUNS: Table = {
  name: 'session_runs',
  kind: 'run',
  key: ['session_id'],
  columns: { session_id: 'uuid', place: 'bigint' },
  erased_with: 'session',
  counted: false,
  exported: false,
  is_derived: true,
  waits: [
    {
      column: 'expires_at',
      at_most: [
        { s: 600, which: 't.owner IS NOT NULL' },
        { s: 5, which: "t.owner IS NOT NULL AND t.expires_at - now() > (t.ttl_ms + 5000) * interval '1 ms'" },
      ],
    },
    { column: 'wake_at', at_most: [{ s: 5, which: DUE_AT_ONCE }] },
  ],
  checks: {
    run_without_input: {
      where: `t.wake_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM session_inbox i WHERE i.project_id = $1 AND i.session_id = t.session_id AND i.withdrawn_at IS NULL)`,
      detail: "'it waits for a runner since ' || t.wake_at",
      means: 'a session waits for a runner because of input that was lost',
      todo: LOST,
    },
  },
}

const INBOX: Table = {
  name: 'session_inbox',
  kind: 'input',
  key: ['session_id', 'id'],
  columns: {
    session_id: 'uuid',
    id: 'uuid',
    place: 'ordinal',
    mode: 'text',
    entry_kind: 'text',
    type: 'text?',
    key: 'text?',
    role: 'text?',
    format: 'text?',
    bytes: 'integer',
    tokens: 'integer',
    data: 'object',
    meta: 'object?',
    created_at: 'time',
    not_before: 'time',
    expires_at: 'time?',
    withdrawn_at: 'time?',
    reason: 'text?',
  },
  erased_with: 'session',
  counted: false,
  exported: true,
  unchanging: ['entry_kind', 'created_at'],
  order: ['id'],
  checks: {
    input_in_log: {
      where: `t.withdrawn_at IS NULL AND EXISTS (
        SELECT FROM entries e WHERE e.project_id = $1 AND ${byId('e', 't.session_id', 't.id')})`,
      detail: "'it is pending, and the log has an entry with its id'",
      means: 'an input that was applied and is still pending',
      todo: ORPHAN,
    },
    input_malformed: {
      where: `t.entry_kind NOT IN ('event', 'message') OR (t.entry_kind = 'event' AND t.type IS NULL)
        OR (t.entry_kind = 'message' AND (t.role IS NULL OR t.format IS NULL)) OR t.bytes < 2 OR t.tokens < 0`,
      detail: "'kind ' || t.entry_kind || ', bytes ' || t.bytes || ', tokens ' || t.tokens",
      means: 'an input lacks fields of its kind, or has impossible sizes',
      todo: LOST,
    },
    input_blob_unreferenced: {
      where: `${queries.isPendingText('t')} AND EXISTS (
        SELECT FROM jsonb_path_query(t.data, '${BLOBS_OF_ENTRY}') AS x (sha256) WHERE NOT EXISTS (
          SELECT FROM blob_references r
          WHERE r.project_id = $1 AND r.owner_id = t.session_id AND r.seq = 0 AND r.sha256 = x.sha256 #>> '{}'))`,
      detail: `'it names ' || jsonb_path_query_array(t.data, '${BLOBS_OF_ENTRY}')::text`,
      means: 'an input names a blob that is not kept for it',
      todo: LOST,
    },
    input_unlisted: {
      where: `${queries.isPendingText('t')} AND NOT EXISTS (
        SELECT FROM session_runs r WHERE r.project_id = $1 AND r.session_id = t.session_id AND r.wake_at <= t.not_before)`,
      detail: "'session_runs has no wake_at for it'",
      means: 'an input that no runner is given',
      todo: RELISTED,
    },
    input_place: {
      where: `t.place > (
        SELECT coalesce(h.run_place, 0) FROM session_heads h WHERE h.project_id = $1 AND h.session_id = t.session_id)`,
      detail: "'its place is ' || t.place || ', which the head has not reached'",
      means: 'input that comes next would stand before this one',
      todo: RELISTED,
    },
  },
}

const REQUESTS: Table = {
  name: 'session_requests',
  kind: 'request',
  key: ['id'],
  columns: {
    id: 'uuid',
    session_id: 'uuid',
    place: 'ordinal',
    seq: 'ordinal',
    bytes: 'integer',
    body: 'object',
    call_sha256: 'text?',
    created_at: 'time',
    expires_at: 'time?',
    decision: 'text?',
    answer: 'object?',
    resolved_by: 'text?',
    resolved_at: 'time?',
    resolved_seq: 'ordinal?',
  },
  erased_with: 'session',
  counted: false,
  exported: true,
  unchanging: ['created_at'],
  order: ['created_at', 'id'],
  checks: {
    request_seq: {
      where: `NOT EXISTS (
        SELECT FROM entries e WHERE e.project_id = $1 AND e.session_id = t.session_id AND e.seq = t.seq AND e.type = '${queries.REQUEST_TYPE}')`,
      detail: "'the log has no such request at seq ' || t.seq",
      means: 'a request that the log does not show',
      todo: LOST,
    },
    request_resolution: {
      where: `(t.decision IS NULL) <> (t.resolved_at IS NULL) OR (t.resolved_seq IS NOT NULL AND NOT EXISTS (
        SELECT FROM entries e WHERE e.project_id = $1 AND e.session_id = t.session_id AND e.seq = t.resolved_seq AND e.type = '${queries.RESOLUTION_TYPE}'))`,
      detail:
        "concat('its decision is ', coalesce(t.decision, 'none'), ', at seq ', coalesce(t.resolved_seq::text, 'none'))",
      means: 'a request was resolved in another way than the log shows',
      todo: LOST,
    },
  },
}

interface OpenRuns extends OpenModule {
  tellOfInput(listener: RunParts['onInput']): void
}

/** Leases, inboxes and requests of sessions: docs/runs.md. */
export const RUNS_MODULE: Module<OpenRuns> = {
  name: 'runs',
  open: (_kits, opened) => {
    const { usage } = opened(PROJECTS_MODULE)
    const { feed, heartbeat } = opened(LOG_MODULE)
    const parts: RunParts = { feed, heartbeat, usage, onInput: () => {} }
    return {
      tellOfInput: (listener) => {
        parts.onInput = listener
      },
      routes: async () => {
        const [leases, inbox, requests, { Lease, InboxInput, RunnerRequest, Run }] = await Promise.all([
          import('./lease_routes.js'),
          import('./inbox_routes.js'),
          import('./request_routes.js'),
          import('./run_schema.js'),
        ])
        const project = allOf(
          leases.leaseRoutes(parts),
          inbox.inboxRoutes(parts),
          requests.requestRoutes(parts),
        )
        return { project, schemas: [Lease, InboxInput, RunnerRequest, Run] }
      },
    }
  },
  functions: functionsIn(queries),
  tables: [RUNS, INBOX, REQUESTS],
}
