import type { Dependents } from '../lifecycle/table.js'
import type { IdempotencyKey } from '../log/append/append_request.js'
import type { Room } from '../projects/usage.js'

/** A request for a copy. */
export interface CopyRequest {
  project_id: string
  session_id: string
  /** The copy ends with this entry; by default with the last one. */
  up_to_seq: number | undefined
  /** The copy's user, if not that of the original. */
  user: string | undefined
  use_uuid: string | undefined
  /** The body as sent; configs are taken from it. */
  body: string
  idempotency: IdempotencyKey | undefined
  /** The quota that the copy must fit into. */
  room: Room
  /** Whether the caller is still connected: without a key, nobody else could ever learn of the copy. */
  isWanted: () => boolean
  /** Whether this process keeps running. */
  isServing: () => boolean
  /** What else belongs to a session. */
  dependents: Dependents
}
