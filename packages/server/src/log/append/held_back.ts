import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { PIECE_BYTES_MAX } from '@annals/kits/limits.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import { FIND_FENCES, FIND_INPUT_STATES } from './append_queries.js'
import { appendsOf, fail, type PendingAppend, type SessionAppend } from './append_request.js'

export function fencedError(fence: number, sent: number | undefined, place = ''): AnnalsError {
  return new AnnalsError(
    'fenced',
    sent === undefined
      ? `${place}The session's lease requires the header Annals-Fence for this write. Take the lease, and send its fence.`
      : `${place}The session's fence is ${fence}, not ${sent}: another runner has taken the lease. Stop working on this session.`,
  )
}

/** Refuses an append that stored nothing, and says why: there is no such session, or its lease or inbox is not as it should be. */
export async function failHeldBack(database: Database, pending: PendingAppend): Promise<void> {
  try {
    fail(pending, await reasonOf(database, pending))
  } catch (error) {
    fail(pending, error)
  }
}

async function reasonOf(database: Database, { request }: PendingAppend): Promise<AnnalsError> {
  const { project_id } = request
  const appends = appendsOf(request)
  const ids = plainArray(appends.map(({ session_id }) => session_id))
  const rows = await database.query(FIND_FENCES, [project_id, ids])
  const heads = new Map(rows.map((row) => [row.session_id!, row]))
  for (const [index, append] of appends.entries()) {
    const at = request.appends && `/appends/${index}`
    const head = heads.get(append.session_id)
    if (!head) return notFound('session', at && `${at}/session_id`)
    const isFenced =
      append.fence === undefined ? head.requires_fence === 't' : Number(head.fence) !== append.fence
    if (isFenced) return fencedError(Number(head.fence), append.fence, at && `${at}: `)
    const lost = append.apply && (await refusedInputs(database, project_id, append))
    if (lost) return lost
  }
  return new AnnalsError(
    'unavailable',
    'The lease or the inbox of the session changed in the meantime. Nothing was stored; retry shortly.',
  )
}

/** Why the inputs of an append cannot be applied, if they cannot. */
async function refusedInputs(
  database: Database,
  project_id: string,
  { session_id, apply = [] }: Pick<SessionAppend, 'session_id' | 'apply'>,
): Promise<AnnalsError | undefined> {
  const rows = await database.query(FIND_INPUT_STATES, [project_id, session_id, plainArray(apply)])
  const states = new Map(rows.map(({ id, state }) => [id!, state!]))
  for (const id of apply) {
    const state = states.get(id)
    if (state === 'pending') continue
    const why = state === undefined ? 'the inbox does not have it' : `it ${state}`
    return new AnnalsError(
      'not_pending',
      `Input ${id} is not pending: ${why}. Nothing was stored; read the inbox again.`,
    )
  }
  const bytes = rows.reduce((sum, row) => sum + Number(row.bytes), 0)
  if (apply.length > 1 && bytes > PIECE_BYTES_MAX)
    return new AnnalsError(
      'payload_too_large',
      `/apply names inputs of more than ${PIECE_BYTES_MAX} bytes together. Apply fewer at once.`,
    )
  return undefined
}
