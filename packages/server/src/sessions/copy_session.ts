import { AnnalsError } from '../errors.js'
import type { FairSemaphore } from '../fairness/fair_semaphore.js'
import { newId } from '../ids.js'
import { type Created, createOnce } from '../log/create_once.js'
import { readLastSeq } from '../log/read/read_log.js'
import type { Database } from '../postgres/database.js'
import { call } from '../postgres/stored_function.js'
import { readSize } from '../projects/count_usage.js'
import { withinRoom } from '../projects/usage.js'
import { COMPARE_COPY, COPY_SHORT_SESSION } from './copy_queries.js'
import { type CopyRequest, copyInSlices, SLICE } from './long_copy.js'
import { refuseWhileReserved } from './sessions.js'

/**
 * Copies a session with its log. Returns `{ old_session_id, new_session_id }` as JSON.
 *
 * A short session is copied by one statement. A longer one is copied in slices, a short transaction each:
 * - begun: the copy has a lease, which is a row of erased_sessions, and a key without an answer, if the caller sent
 *   one;
 * - in progress: each slice adds entries and renews the lease, and nobody sees any of it;
 * - finished: one transaction creates the session and its head, answers the key, and removes the lease.
 *
 * If the copy ends before, the lease is removed or expires, and what was written is deleted like the remains of a
 * session. The log is copied up to `up_to_seq`, or to its end at the beginning. Entries never change, except the meta of a message,
 * which is copied as its slice finds it. If `use_uuid` is an existing copy with the same values, returns that one.
 * @throws AnnalsError session_not_found, seq_ahead, session_exists, idempotency_key_reused, overloaded, unavailable
 */
export function copySession(
  database: Database,
  longWork: FairSemaphore,
  request: CopyRequest,
): Promise<Created> {
  const { project_id, session_id, use_uuid, up_to_seq, idempotency, room } = request
  const tenant = { database, project_id }
  return createOnce(tenant, idempotency, async () => {
    const existing = use_uuid && (await findAgreeing(database, request, use_uuid))
    if (existing) return existing
    if (use_uuid !== undefined) await refuseWhileReserved(tenant, use_uuid)
    const { bytes } = room.bytes ? await readSize(tenant, session_id, up_to_seq) : { bytes: 0 }
    return withinRoom(room, { sessions: 1, bytes }, async () => {
      const copied = await copy(database, longWork, request)
      const { new_session_id } = JSON.parse(copied) as { new_session_id: string }
      // The copy is there, whether or not it can be counted.
      const size = await readSize(tenant, new_session_id).catch(() => ({}))
      room.made?.({ sessions: 1, ...size })
      return copied
    })
  })
}

async function copy(database: Database, longWork: FairSemaphore, request: CopyRequest): Promise<string> {
  const { project_id, session_id, use_uuid, up_to_seq, user, body, idempotency } = request
  const { key = null, request_hash = null } = idempotency ?? {}
  const asked = [session_id, use_uuid ?? newId(), up_to_seq ?? null, user ?? null, newId(), body]
  const bounds = [key, request_hash, SLICE.entries, SLICE.bytes]
  const short = await call(database, COPY_SHORT_SESSION, project_id, ...asked, ...bounds)
  if (short) return short
  const last_seq = await readLastSeq(database, project_id, session_id)
  if (up_to_seq !== undefined && up_to_seq > last_seq) throw beyond(up_to_seq, last_seq)
  return longWork.run(project_id, () => copyInSlices(database, request))
}

async function findAgreeing(
  database: Database,
  { project_id, session_id, up_to_seq, user, body }: CopyRequest,
  use_uuid: string,
): Promise<string | undefined> {
  const values = [project_id, session_id, use_uuid, up_to_seq ?? null, user ?? null, body]
  const [row] = await database.query(COMPARE_COPY, values)
  if (!row || row.agrees === 't') return row?.json ?? undefined
  throw new AnnalsError(
    'session_exists',
    'A session with that use_uuid already exists, and it is not this copy: it has another original, up_to_seq, user or configs.',
  )
}

function beyond(up_to_seq: number, last_seq: number): AnnalsError {
  return new AnnalsError('seq_ahead', `/up_to_seq ${up_to_seq} is beyond the session's last seq ${last_seq}.`)
}
