import type { Dependents, ErasedStep } from '@annals/kits/lifecycle/table.js'
import { ObjectStoreAway } from '@annals/kits/outgoing/object_store.js'
import type { Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import {
  ARE_OBJECTS_KEPT,
  COLLECT_BLOBS,
  DELETED_BYTES_MAX,
  ERASE_BLOBS,
  FIND_DISCARDED_OBJECTS,
  FIND_PROJECTS_WITH_DISCARDED_OBJECTS,
  FIND_PROJECTS_WITH_OLD_BLOBS,
  FORGET_OBJECT,
  KEEP_OBJECTS,
  NOTE_OBJECTS,
  RELEASE_BLOBS,
  RELEASED_AT_ONCE_MAX,
} from './blob_queries.js'

/** Blobs that one transaction looks at: up to some hundred MB are deleted with them. */
const BLOBS_AT_ONCE_MAX = 16

/** Deletes what nothing has referred to for a day, in all projects, a bounded transaction at a time. */
export async function collectBlobs(database: Queryable, signal: AbortSignal): Promise<void> {
  for (const { project_id } of await database.query(FIND_PROJECTS_WITH_OLD_BLOBS, [])) {
    for (let seen = BLOBS_AT_ONCE_MAX; seen === BLOBS_AT_ONCE_MAX; ) {
      signal.throwIfAborted()
      seen = Number(await call(database, COLLECT_BLOBS, project_id!, BLOBS_AT_ONCE_MAX))
    }
  }
}

export const releaseSome: Dependents['eraseSome'] = async ({ database, project_id }, owner_ids) => {
  const answer = await call(database, RELEASE_BLOBS, project_id, owner_ids, RELEASED_AT_ONCE_MAX)
  const [released, blobs] = answer!.split(',').map(Number)
  return { counts: { blobs: blobs! }, has_all: released! < RELEASED_AT_ONCE_MAX }
}

export async function eraseSomeBlobs({ database, project_id }: Tenant, ids: string[]): Promise<ErasedStep> {
  const rows = await database.query(ERASE_BLOBS, [project_id, ids, DELETED_BYTES_MAX])
  const objects = rows.filter((row) => row.in_object_store === 't').map((row) => row.id!)
  if (objects.length > 0) await call(database, NOTE_OBJECTS, project_id, objects)
  const gone = new Set(rows.map((row) => row.id))
  return { counts: { blobs: gone.size }, remains: [], left: ids.filter((id) => !gone.has(id)) }
}

const AT_ONCE = 8
/** Objects that an erasure waits for; the rest is left to housekeeping. */
const WAITED_FOR_MAX = 200

export function keyOf(project_id: string, blob_id: string): string {
  return `${project_id}/${blob_id}`
}

/**
 * Deletes the objects of a project's blobs that are gone. Returns how many are left. A note goes only when its object is known
 * to have gone, so whatever breaks off is done again.
 */
export async function discardObjects({ database, project_id }: Tenant): Promise<number> {
  const { objects } = database
  if (!objects) return 0
  const rows = await database.query(FIND_DISCARDED_OBJECTS, [project_id, WAITED_FOR_MAX])
  if (rows.length > 0 && (await areKept(database, project_id))) return rows.length
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

/** Housekeeping in all projects, until the store cannot be reached. */
export async function discardAllObjects(database: Queryable, signal: AbortSignal): Promise<void> {
  if (!database.objects) return
  for (const { project_id } of await database.query(FIND_PROJECTS_WITH_DISCARDED_OBJECTS, [])) {
    while ((await database.query(FIND_DISCARDED_OBJECTS, [project_id!, 1])).length > 0) {
      signal.throwIfAborted()
      if ((await discardObjects({ database, project_id: project_id! })) === 0) continue
      if (await areKept(database, project_id!)) break
      return
    }
  }
}

const wordOf = (project_id: string) => `project ${project_id}`

/** Keeps the objects of a project while an export reads them on a snapshot, in which their blobs may still be. */
export async function keepObjects({ database, project_id }: Tenant): Promise<void> {
  await database.query(KEEP_OBJECTS, [wordOf(project_id)])
}

/** Whether an export reads them. One that begins later does not see the blobs of objects that are discarded by now. */
async function areKept(database: Queryable, project_id: string): Promise<boolean> {
  const [row] = await database.query(ARE_OBJECTS_KEPT, [wordOf(project_id)])
  return row!.kept === 't'
}

export function objectsOf({ objects }: Queryable) {
  if (objects) return objects
  throw new ObjectStoreAway(
    'The bytes are in an object store that this node does not know. Set ANNALS_S3_BUCKET.',
  )
}
