import { AnnalsError, AppendInDoubt, invalidRequest } from '@annals/kits/errors.js'
import { answer } from '@annals/kits/http/answer/answer.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { newId } from '@annals/kits/ids.js'
import { RETRACTED_AFTER_MAX } from '@annals/kits/limits.js'
import { jsonList } from '@annals/kits/lists/resource_json.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { lacksBytes } from '@annals/messages'
import { answerEntries } from '../blobs/blob_bytes.js'
import { mayRead } from '../projects/authenticate.js'
import { logOfPath } from './answer_log.js'
import {
  type AppendAnswer,
  type AppendedEntry,
  askedSeqs,
  RETRACTION_TYPE,
  type Retraction,
} from './append/append_request.js'
import { LOG_BODIES } from './append_bodies.js'
import { type AppendParts, appendWithinQuota, markReplayed } from './append_within_quota.js'
import { type RetractEntriesBody, RetractedEntries } from './entry_schema.js'
import { AppendHeaders } from './event_schema.js'
import { findIds, type LogReader, readLastSeq } from './read/read_log.js'

const NO_SEQS = '{"seqs":[]}'

const operation = operationsOf('Timeline')

export const retractionRoutes = (parts: AppendParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/retractions',
      config: { appends: true, attaches_in: 'blob' },
      id: 'retractEntries',
      body: LOG_BODIES.retractEntries,
      summary: 'Retract entries of a session',
      description:
        'Takes exactly one of `ids`, `after_seq` and `last`. Appends one event of type `annals.retraction`, whose data has the `seqs` of the entries, and marks each of them with `retracted_by`. Messages, contexts, the latest entries of keys, and token counts leave them out; the timeline and the list of events show them. Nothing is deleted. The answer has the entries: `{"last":1}` is an atomic pop, and no two callers get the same entry. If nothing is found, the event has no seqs. With `entries`, these are appended in the same commit, so they replace the retracted ones.',
      headers: AppendHeaders,
      returns: 'The event, and the entries that it retracted.',
      data: RetractedEntries,
      errors: ['quota_exceeded', 'entry_not_found', 'seq_conflict', 'seq_ahead'],
      handle: async (request, reply, { entries, ...which }) => {
        const session = { project_id: request.project_id, session_id: request.params.session_id }
        const plan = await planRetraction(request.database, session, which)
        const refusal = plan instanceof AnnalsError ? plan : undefined
        // A retry is answered, even if the same request would be refused by now.
        if (refusal && request.headers['idempotency-key'] === undefined) throw refusal
        const outcome = await appendWithinQuota(parts, request, {
          ...session,
          kind: 'entries',
          entries: [retractionEvent(), ...entries],
          retraction: plan instanceof AnnalsError ? { seqs: [] } : plan,
          only_known: refusal,
        })
        markReplayed(reply, outcome.replayed)
        const [first, ...appended] = outcome.entries as [AppendAnswer, ...AppendAnswer[]]
        const [begin, end] = aroundItems(first, appended)
        const items = mayRead(request) ? first.items : []
        const text = items && begin + items.join(',') + end
        if (text && !lacksBytes(text)) return answer(reply, text)
        return answerEntries(
          reply,
          jsonList(begin, items ? [items] : readItems(logOfPath(reply), first), end),
        )
      },
    }),
  )

function retractionEvent(): AppendedEntry {
  return {
    id: newId(),
    id_given: false,
    kind: 'event',
    type: RETRACTION_TYPE,
    format: null,
    role: null,
    key: null,
    bytes: NO_SEQS.length,
    tokens: 0,
    occurred_at: null,
    data: NO_SEQS,
    meta: null,
  }
}

function aroundItems({ json }: AppendAnswer, appended: AppendAnswer[]): [begin: string, end: string] {
  const end = appended.length === 0 ? ']}' : `],"appended":[${appended.map(({ json }) => json).join(',')}]}`
  return [`{"retraction":${json},"items":[`, end]
}

/** @throws AnnalsError session_not_found: all of it is gone by now; AppendInDoubt */
export async function* readItems(
  log: Pick<LogReader, 'readSeqs'>,
  { json }: Pick<AppendAnswer, 'json'>,
): AsyncGenerator<string[]> {
  const { data } = JSON.parse(json) as { data: Parameters<typeof askedSeqs>[0] }
  try {
    for await (const entries of log.readSeqs(askedSeqs(data))) yield entries.map(({ json }) => json)
  } catch (error) {
    if (error instanceof AnnalsError && error.error === 'session_not_found') throw error
    // The retraction is stored, so no error may say that it is not.
    throw new AppendInDoubt('the retracted entries could not be read', { cause: error })
  }
}

type AskedRetraction = Omit<RetractEntriesBody, 'entries'>

/**
 * Plans a retraction, or says why it is refused. Entries never disappear and are never made live again, so what
 * is found here still holds when the retraction is stored.
 */
export async function planRetraction(
  database: Queryable,
  session: { project_id: string; session_id: string },
  body: AskedRetraction,
): Promise<Retraction | AnnalsError> {
  try {
    return await plan(database, session, body)
  } catch (error) {
    if (error instanceof AnnalsError && error.error !== 'unavailable') return error
    throw error
  }
}

async function plan(
  database: Queryable,
  session: { project_id: string; session_id: string },
  { ids, after_seq, last, kind, type }: AskedRetraction,
): Promise<Retraction> {
  const given = [ids, after_seq, last].filter((one) => one !== undefined)
  if (given.length !== 1) throw invalidRequest('/ids, /after_seq and /last: send exactly one of them.')
  if (last !== undefined) return { last, kind, type }
  if (kind !== undefined || type !== undefined)
    throw invalidRequest(`/${kind === undefined ? 'type' : 'kind'} is only accepted with last.`)
  if (ids) return { seqs: await seqsOf(database, session, ids) }
  const last_seq = await readLastSeq(database, session.project_id, session.session_id, { seq: after_seq! })
  if (last_seq - after_seq! > RETRACTED_AFTER_MAX)
    throw invalidRequest(
      `/after_seq has ${last_seq - after_seq!} entries after it; one request retracts at most ${RETRACTED_AFTER_MAX}. Fork the session at that seq instead: POST …/copy with up_to_seq.`,
    )
  return { after_seq: after_seq! }
}

async function seqsOf(
  database: Queryable,
  session: { project_id: string; session_id: string },
  ids: string[],
): Promise<number[]> {
  const found = await findIds(database, session, ids)
  return found.map((entry, index) => {
    if (!entry)
      throw new AnnalsError('entry_not_found', `/ids/${index} is not the id of an entry in this session.`)
    if (entry.type === RETRACTION_TYPE)
      throw invalidRequest(`/ids/${index} is a retraction, which cannot be retracted.`)
    return entry.seq
  })
}
