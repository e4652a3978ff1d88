import { AnnalsError, invalidRequest } from '../../errors.js'
import { RETRACTED_AFTER_MAX } from '../../limits.js'
import type { Queryable } from '../../postgres/database.js'
import { RETRACTION_TYPE, type Retraction } from '../append/append_request.js'
import { findIds, readLastSeq } from './read_log.js'

/** What a caller asks to retract: one of the first three, and with `last` what kind or type. */
export interface AskedRetraction {
  ids?: string[]
  after_seq?: number
  last?: number
  kind?: 'event' | 'message'
  type?: string
}

/**
 * What a request asks to retract, or why it is refused. Entries never disappear and are never made live again, so what
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
  if (given.length !== 1)
    throw invalidRequest('/ids, /after_seq and /last: exactly one of them must be given.')
  if (last !== undefined) return { last, kind, type }
  if (kind !== undefined || type !== undefined)
    throw invalidRequest(`/${kind === undefined ? 'type' : 'kind'} is only taken with last.`)
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
