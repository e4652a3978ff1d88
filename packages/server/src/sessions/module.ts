import * as changes from '@annals/kits/changes/change_queries.js'
import * as scans from '@annals/kits/changes/project_consumer_queries.js'
import { type Check, LOST, ORPHAN, type Table } from '@annals/kits/lifecycle/table.js'
import type { Kits, Module } from '@annals/kits/module.js'
import { functionsIn } from '@annals/kits/postgres/stored_function.js'
import { readBlobFacts } from '../blobs/blob_store.js'
import { collectBlobs, discardAllObjects } from '../blobs/discard_blobs.js'
import * as appends from '../log/append/append_queries.js'
import { SESSION_LIST } from '../log/append/append_queries.js'
import * as messages from '../log/read/read_queries.js'
import { bySeq } from '../log/read/read_queries.js'
import { END_COPIES } from '../log/unfinished_copy_queries.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { CHANGE_TABLES } from './change_tables.js'
import * as copies from './copy_queries.js'
import { eraseAllRemains, eraseRemains, eraseSomeSessions } from './erase/erase_sessions.js'
import * as erasures from './erase/erasure_queries.js'
import { applyRetention } from './erase/retention.js'
import * as expiry from './expiry_queries.js'
import { LAST_ACTIVITY } from './last_activity.js'
import * as activity from './last_activity_queries.js'
import * as recounts from './recount_tokens.js'
import { TokenRecount } from './recount_tokens.js'
import * as sessions from './session_queries.js'

const SESSIONS: Table = {
  name: SESSION_LIST.table,
  kind: 'session',
  key: ['id'],
  columns: { id: 'uuid', user_id: 'user?', created_at: 'time' },
  erased_with: 'user',
  order: ['created_at', 'id'],
  document: SESSION_LIST.document,
  counted: true,
  exported: true,
  checks: {},
  own: {
    further_counts: ['entries'],
    eraseSome: eraseSomeSessions,
    eraseRemains,
    eraseAllRemains,
  },
}

/** Checks of idempotency keys, besides that their owners exist. */
const KEY_CHECKS = {
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

const WITH_THE_SESSION = 'With its session in all respects, by the functions of that table.'

export const SESSIONS_MODULE: Module = {
  name: 'sessions',
  open: (kits, opened) => {
    const { usage } = opened(PROJECTS_MODULE)
    return {
      routes: async () => (await import('./session_routes.js')).allSessionRoutes({ ...kits, usage }),
      consumers: [LAST_ACTIVITY],
      background: () => {
        const recount = recountTokens(kits)
        const retention = retain(kits)
        return { ended: () => Promise.all([recount.ended(), retention.ended()]) }
      },
    }
  },
  functions: functionsIn(
    activity,
    appends,
    changes,
    copies,
    END_COPIES,
    erasures,
    expiry,
    messages,
    recounts,
    scans,
    sessions,
  ),
  tables: [
    SESSIONS,
    { name: 'session_heads', handled: WITH_THE_SESSION },
    { name: 'entries', handled: WITH_THE_SESSION },
    {
      name: 'erased_sessions',
      handled:
        'Keeps in mind what is left of erased sessions, and goes with the last of it. An export has it, so that an import goes on.',
      waits: copies.COPIES_WAIT,
    },
    ...CHANGE_TABLES,
    { name: 'change_cursors', handled: 'Go with their session and its marks.' },
    {
      name: 'idempotency_keys',
      kind: 'key',
      key: ['key'],
      columns: { key: 'text', owner_id: 'uuid', created_at: 'time' },
      erased_with: 'any',
      owner_column: 'owner_id',
      counted: false,
      exported: false,
      checks: KEY_CHECKS,
    },
  ],
}

function recountTokens({ background, thread }: Kits): TokenRecount {
  const { database } = background
  return new TokenRecount({
    ...background,
    tokensOf: (project_id, messages, facts) => thread.run(project_id, 'storedTokens', messages, facts),
    factsOf: (project_id, hashes) =>
      readBlobFacts({ database, project_id }, hashes, (bytes) => thread.run(project_id, 'mediaFacts', bytes)),
  })
}

function retain({ database, background, erasure, config }: Kits) {
  const sweeps = [collectBlobs, discardAllObjects]
  return applyRetention(
    { ...background, database: database.of('housekeeping') },
    erasure,
    config.retention_ms,
    sweeps,
  )
}
