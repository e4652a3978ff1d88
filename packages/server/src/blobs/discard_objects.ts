import { AnnalsError } from '../errors.js'
import type { Queryable, Tenant } from '../postgres/database.js'
import {
  FIND_DISCARDED_OBJECTS,
  FIND_PROJECTS_WITH_DISCARDED_OBJECTS,
  FORGET_OBJECT,
} from './object_queries.js'

const AT_ONCE = 8
/** Objects that an erasure waits for; the rest is left to housekeeping. */
const WAITED_FOR_MAX = 200

/** Where the bytes of a blob are in the object store. */
export function keyOf(project_id: string, blob_id: string): string {
  return `${project_id}/${blob_id}`
}

/**
 * Deletes the objects of a project's blobs that are gone. Gives how many are left. A note goes only when its object is known
 * to have gone, so whatever breaks off is done again.
 */
export async function discardObjects({ database, project_id }: Tenant): Promise<number> {
  const { objects } = database
  if (!objects) return 0
  const rows = await database.query(FIND_DISCARDED_OBJECTS, [project_id, WAITED_FOR_MAX])
  let left = rows.length
  for (let at = 0; at < rows.length; at += AT_ONCE) {
    const gone = await Promise.allSettled(
      rows.slice(at, at + AT_ONCE).map(async ({ id }) => {
        await objects.delete(keyOf(project_id, id!))
        await database.query(FORGET_OBJECT, [project_id, id!])
        left -= 1
      }),
    )
    // The store is away: the others would wait as long.
    if (gone.some(({ status }) => status === 'rejected')) break
  }
  return left
}

/** Housekeeping: what is left in all projects, until the store cannot be reached. */
export async function discardAllObjects(database: Queryable, signal: AbortSignal): Promise<void> {
  if (!database.objects) return
  for (const { project_id } of await database.query(FIND_PROJECTS_WITH_DISCARDED_OBJECTS, [])) {
    while ((await database.query(FIND_DISCARDED_OBJECTS, [project_id!, 1])).length > 0) {
      signal.throwIfAborted()
      if ((await discardObjects({ database, project_id: project_id! })) > 0) return
    }
  }
}

/** @throws AnnalsError unavailable */
export function objectsOf({ objects }: Queryable) {
  if (objects) return objects
  const sentence = 'The bytes are in an object store that this node does not know. Set ANNALS_S3_BUCKET.'
  throw new AnnalsError('unavailable', sentence)
}
