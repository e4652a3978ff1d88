import { AnnalsError } from '@annals/kits/errors.js'
import { logReadBytes, withFields } from '@annals/kits/http/answer/answer.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import { newId } from '@annals/kits/ids.js'
import { memberTexts } from '@annals/messages/json'
import Type from '#typebox'
import { mayRead } from '../projects/authenticate.js'
import { LOG_BODIES } from './append_bodies.js'
import { appendWithinQuota, type LogParts, markReplayed } from './append_within_quota.js'
import { compactionEvent } from './compaction_event.js'
import { AppendHeaders } from './event_schema.js'
import { type CompactionPlan, planCompaction } from './read/plan_compaction.js'
import { contextMessages } from './render/page_renderer.js'

/** Plans in a row that a retraction or another compaction may overtake. */
const ATTEMPTS_MAX = 10

export const compactSession = (parts: LogParts) =>
  operationsOf('Messages')({
    call: 'POST /session/:session_id/compactions',
    config: { appends: true, attaches_in: 'blob' },
    id: 'compactSession',
    body: LOG_BODIES.compactSession,
    summary: 'Replace the beginning of a session with a summary in contexts',
    description:
      'Appends an event of type `annals.compaction`. From then on, contexts begin with the summary, the messages of `except`, and the messages after `to_seq`; the log itself stays whole. If an entry in its range is retracted, the same event retracts the compaction, and the next context does not use it. It must not separate a tool call from its result, and must cover everything that earlier ones cover. To undo it, retract it.',
    headers: AppendHeaders,
    status: 201,
    returns:
      'The event. Its `data` has the range, the summary, and a digest of what it covers, unless the key lacks the scope `read`.',
    data: Type.Ref('SessionEvent'),
    errors: ['quota_exceeded', 'entry_not_found', 'seq_conflict', 'seq_ahead', 'blob_missing'],
    json: async (request, reply, { summary, ...asked }) => {
      const { project_id, database, memory, headers } = request
      const { session_id } = request.params
      const know = (messages: Parameters<typeof contextMessages>[2]) =>
        contextMessages(parts.thread, project_id, messages)
      const if_match =
        headers['if-match'] === undefined ? undefined : Number(headers['if-match'].slice(1, -1))
      await memory.hold(2 * logReadBytes(request))
      for (let attempt = 1; ; attempt++) {
        const plan = await planCompaction({ database, project_id, session_id, know }, asked, if_match)
        const refusal = plan instanceof AnnalsError ? plan : undefined
        // A retry is answered, even if the same request would be refused by now.
        if (refusal && headers['idempotency-key'] === undefined) throw refusal
        try {
          const outcome = await appendWithinQuota(parts, request, {
            session_id,
            kind: 'event',
            entries: [compactionEvent(newId(), summary, refusal ? undefined : (plan as CompactionPlan))],
            unrevised_since: plan instanceof AnnalsError ? undefined : plan.seen_seq,
            only_known: refusal,
          })
          markReplayed(reply, outcome.replayed)
          return mayRead(request) ? outcome.entries[0]!.json : withoutDigest(outcome.entries[0]!.json)
        } catch (error) {
          const isOvertaken =
            error instanceof AnnalsError && error.error === 'seq_conflict' && error !== refusal
          if (!isOvertaken || if_match !== undefined || attempt === ATTEMPTS_MAX) throw error
        }
      }
    },
  })

/** A key that may not read could guess the digested content. */
function withoutDigest(event: string): string {
  return withFields(event, { data: withFields(memberTexts(event).get('data')!, { digest: undefined }) })
}
