import { streamResponse } from '@annals/kits/contract/responses.js'
import { PageOf } from '@annals/kits/contract/schema.js'
import { invalidRequest } from '@annals/kits/errors.js'
import { answer, logReadBytes } from '@annals/kits/http/answer/answer.js'
import { Cursors } from '@annals/kits/http/answer/page_answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { parseId } from '@annals/kits/ids.js'
import { IDS_MAX, PAGE_LIMIT_DEFAULT } from '@annals/kits/limits.js'
import { readPosition } from '@annals/kits/lists/log_position.js'
import Type from '#typebox'
import { refuseTail } from '../projects/within_quotas.js'
import { answerEntriesPage, answerLogPage, logOfPath, versionOfLog } from './answer_log.js'
import { LOG_BODIES } from './append_bodies.js'
import { appendWithinQuota, fenceOf, type LogParts, markReplayed } from './append_within_quota.js'
import {
  AppendedEntries,
  AppendedToSessions,
  AppendToSessionsQuery,
  LatestQuery,
  TailHeaders,
  TimelineQuery,
} from './entry_schema.js'
import { AppendHeaders, FenceHeaders, IdempotencyHeaders } from './event_schema.js'
import { acceptsStream, streamTail } from './follow/event_stream.js'
import { findIds, readLastSeq } from './read/read_log.js'

const operation = operationsOf('Timeline')

export const timelineRoutes = (parts: LogParts) =>
  allOf(
    operation({
      call: 'GET /session/:session_id/timeline',
      id: 'readTimeline',
      summary: "Read a session's log, or tail it",
      description:
        'Messages and events in one list, in order of `seq`. With `Accept: text/event-stream` the same path streams the stored entries after `after_seq` (or `Last-Event-ID`) and then each new one, once and in order: `id: <seq>`, `event: message` or `event: event`, `data: <the item on one line>`. After each entry, and after entries that `kind` or `type` left out, a block with only `id: <seq>@<created_at>` follows, so the `Last-Event-ID` that an `EventSource` sends also shows whether the log is still the same. A position beyond the last seq is refused (`seq_ahead`), and so is a position whose entry has changed (`log_diverged`): both can happen after a restore from a backup. An open tail then ends.',
      querystring: TimelineQuery,
      headers: TailHeaders,
      returns: 'A page of entries.',
      data: PageOf(Type.Ref('TimelineItem')),
      errors: ['seq_ahead', 'log_diverged', 'quota_exceeded'],
      extend: streamResponse,
      version: async (request) => (acceptsStream(request.headers.accept) ? undefined : versionOfLog(request)),
      handle: async (request, reply) => {
        const { feed, heartbeat, usage } = parts
        const { project_id, query } = request
        const { ids, kind, type, after_seq = 0, time_desc = false } = query
        const { session_id } = request.params
        const session = { project_id, session_id }
        if (ids !== undefined) {
          const found = await findIds(request.database, session, readIds(query, ids))
          const seqs = found.flatMap((entry) => entry?.seq ?? [])
          return answerEntriesPage(reply, logOfPath(reply).readSeqs(seqs), seqs.length, () => '')
        }
        if (request.method === 'GET' && acceptsStream(request.headers.accept)) {
          refuseForStream(query)
          const last_event_id = request.headers['last-event-id'] as string | undefined
          const seen = last_event_id === undefined ? { seq: after_seq } : readPosition(last_event_id)
          await readLastSeq(request.database, project_id, session_id, seen)
          const tail = { ...session, kind, type, seen }
          refuseTail(request, usage)
          return streamTail({ database: request.database, feed, heartbeat }, request, reply, tail)
        }
        const filter = [time_desc, kind, type, String(after_seq)]
        return answerLogPage(reply, 'item', new Cursors('timeline', project_id, session_id, ...filter), query)
      },
    }),

    operation({
      call: 'POST /session/:session_id/entries',
      config: { appends: true, attaches_in: 'blob' },
      id: 'appendEntries',
      scope: 'append',
      body: LOG_BODIES.appendEntries,
      summary: 'Append a batch of entries, all or nothing',
      description:
        'Up to 1,000 messages and events with consecutive seqs. An entry with an `id` is idempotent: if it is sent again, the stored entry is returned.',
      headers: AppendHeaders,
      status: 201,
      returns: 'The stored entries, in order.',
      data: AppendedEntries,
      errors: ['quota_exceeded', 'seq_conflict', 'fenced', 'not_pending', 'blob_missing'],
      json: async (request, reply, { entries, apply }) => {
        const { session_id } = request.params
        if (apply) await request.memory.hold(logReadBytes(request))
        const outcome = await appendWithinQuota(parts, request, {
          session_id,
          kind: 'entries',
          entries,
          apply,
        })
        markReplayed(reply, outcome.replayed)
        return `{"items":[${outcome.entries.map((entry) => entry.json).join(',')}]}`
      },
    }),

    operation({
      call: 'POST /entries',
      config: { appends: true, attaches_in: 'blob' },
      id: 'appendToSessions',
      scope: 'append',
      body: LOG_BODIES.appendToSessions,
      querystring: AppendToSessionsQuery,
      summary: 'Append to several sessions, all or nothing',
      description:
        'Up to 1,000 entries to up to 20 sessions of the project, in one transaction. If anything is refused in one session (it does not exist, its `if_match` does not hold), nothing is stored in any, and `msg` names the index. `configs_patch` merges into the configs in the same transaction.',
      headers: Type.Object({ ...IdempotencyHeaders.properties, ...FenceHeaders.properties }),
      status: 201,
      returns: 'The stored entries by session, in order.',
      data: AppendedToSessions,
      errors: ['quota_exceeded', 'session_not_found', 'seq_conflict', 'fenced', 'not_pending'],
      handle: async (request, reply, asked) => {
        if (asked.some(({ apply }) => apply)) await request.memory.hold(logReadBytes(request))
        const header = fenceOf(request)
        const appends = asked.map((append) => ({ ...append, fence: append.fence ?? header }))
        const outcome = await appendWithinQuota(parts, request, {
          session_id: appends[0]!.session_id,
          kind: 'entries',
          entries: appends.flatMap(({ entries }) => entries),
          appends,
        })
        markReplayed(reply, outcome.replayed)
        const { with_items = true } = request.query
        let from = 0
        const written = appends.map(({ session_id, entries }) => {
          const own = outcome.entries.slice(from, from + entries.length)
          from += own.length
          const items = with_items ? own.map(({ json }) => json) : []
          const seqs = with_items ? '' : `,"seqs":[${own.map(({ seq }) => seq).join(',')}]`
          return `{"session_id":"${session_id}","items":[${items.join(',')}]${seqs}}`
        })
        return answer(reply, `{"appends":[${written.join(',')}]}`, 201)
      },
    }),

    operation({
      call: 'GET /session/:session_id/latest',
      id: 'readLatest',
      summary: 'Read the newest entry of each key',
      description:
        'Ordered by key (by its bytes in UTF-8). Retracted entries are left out, so the entry before is the newest again. The cost does not depend on the length of the log.',
      querystring: LatestQuery,
      returns: 'A page of entries.',
      data: PageOf(Type.Ref('TimelineItem')),
      version: versionOfLog,
      handle: async (request, reply) => {
        const { key, key_prefix = '', limit = PAGE_LIMIT_DEFAULT, cursor } = request.query
        if (key !== undefined && request.query.key_prefix !== undefined)
          throw invalidRequest('Query parameter key cannot be combined with key_prefix.')
        const { project_id, params } = request
        const cursors = new Cursors('latest by seq', project_id, params.session_id, key, key_prefix)
        const log = logOfPath(reply)
        // A cursor holds no key, which a masked reader could read from it.
        const after_key = cursor === undefined ? '' : await log.keyAt(Number(cursors.read(cursor)))
        const entries = log.readLatest({ key, key_prefix, after_key, limit: limit + 1 })
        return answerEntriesPage(reply, entries, limit, (last) => cursors.write(String(last.seq)))
      },
    }),
  )

function readIds(query: TimelineQuery, text: string): string[] {
  const other = Object.keys(query).find((name) => name !== 'ids')
  if (other !== undefined)
    throw invalidRequest(`Query parameter ${other} cannot be combined with ids, which name the entries.`)
  const ids = text.split(',', IDS_MAX + 1)
  const wrong = ids.findIndex((id) => !parseId(id))
  if (ids.length > IDS_MAX || wrong !== -1)
    throw invalidRequest(
      `Query parameter ids takes 1 to ${IDS_MAX} UUIDs, separated by commas; ${wrong === -1 ? 'there are more' : `number ${wrong + 1} is not a UUID`}.`,
    )
  return ids
}

function refuseForStream(query: TimelineQuery): void {
  const paged = (['limit', 'cursor', 'time_desc'] as const).find((name) => query[name] !== undefined)
  if (paged) {
    throw invalidRequest(`Query parameter ${paged} pages a list; a stream takes kind, type and after_seq.`)
  }
}
