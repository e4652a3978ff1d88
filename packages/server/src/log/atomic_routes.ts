import { appendWithinQuota } from '../http/admission/quotas.js'
import { answer } from '../http/answer/answer.js'
import { allOf, operationsOf } from '../http/operation.js'
import { idempotencyOf, markReplayed } from '../http/request/append_headers.js'
import { takeAppends, takeBody } from '../http/request/bodies.js'
import { releaseBody } from '../http/request/read_body.js'
import { AppendedToSessions, AppendToSessionsBody } from './entry_schema.js'
import { IdempotencyHeaders } from './event_schema.js'

const operation = operationsOf('Timeline')

export const atomicRoutes = allOf(
  operation({
    call: 'POST /entries',
    config: { appends: true },
    id: 'appendToSessions',
    summary: 'Append to several sessions, all or nothing',
    description:
      'Up to 1,000 entries to up to 20 sessions of the project, in one transaction. If anything is refused in one session (it does not exist, its `if_match` does not hold), nothing is stored in any, and `msg` names the index. `configs_patch` merges into the configs in the same transaction.',
    headers: IdempotencyHeaders,
    body: AppendToSessionsBody,
    status: 201,
    returns: 'The stored entries by session, in order.',
    data: AppendedToSessions,
    errors: ['quota_exceeded', 'session_not_found', 'seq_conflict'],
    handle: async (request, reply, parts) => {
      const appends = takeBody(request, takeAppends)
      releaseBody(request)
      const outcome = await appendWithinQuota(parts, request, {
        project_id: request.project_id,
        session_id: appends[0]!.session_id,
        kind: 'entries',
        entries: appends.flatMap(({ entries }) => entries),
        appends,
        idempotency: idempotencyOf(request),
        unmarked_until: request.grant!.unmarked_until,
      })
      markReplayed(reply, outcome.replayed)
      const items = outcome.entries.map(({ json }) => json)
      let from = 0
      const written = appends.map(({ session_id, entries }) => {
        const own = items.slice(from, from + entries.length)
        from += own.length
        return `{"session_id":"${session_id}","items":[${own.join(',')}]}`
      })
      return answer(reply, `{"appends":[${written.join(',')}]}`, 201)
    },
  }),
)
