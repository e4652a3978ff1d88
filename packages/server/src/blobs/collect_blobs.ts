import type { Counts, Dependents, ErasedStep } from '../lifecycle/table.js'
import type { Queryable, Tenant } from '../postgres/database.js'
import {
  COLLECT_BLOBS,
  DELETED_BYTES_MAX,
  ERASE_BLOBS,
  FIND_PROJECTS_WITH_OLD_BLOBS,
  RELEASE_BLOBS,
  RELEASED_AT_ONCE_MAX,
} from './blob_queries.js'
import { NOTE_OBJECTS } from './object_queries.js'

/** Blobs that one transaction looks at: up to some hundred MB are deleted with them. */
const BLOBS_AT_ONCE_MAX = 16

/** Deletes what nothing has referred to for a day, in all projects, a bounded transaction at a time. */
export async function collectBlobs(database: Queryable, signal: AbortSignal): Promise<void> {
  for (const { project_id } of await database.query(FIND_PROJECTS_WITH_OLD_BLOBS, [])) {
    for (let seen = BLOBS_AT_ONCE_MAX; seen === BLOBS_AT_ONCE_MAX; ) {
      signal.throwIfAborted()
      const [row] = await database.query(COLLECT_BLOBS.statement, [project_id!, BLOBS_AT_ONCE_MAX])
      seen = Number(row!.answer)
    }
  }
}

/** Deletes references of owners that are being erased, and with each the blob that nothing else refers to. */
export const releaseSome: Dependents['eraseSome'] = async ({ database, project_id }, owner_ids) => {
  const parameters = [project_id, owner_ids, RELEASED_AT_ONCE_MAX]
  const [row] = await database.query(RELEASE_BLOBS.statement, parameters)
  const [released, blobs] = row!.answer!.split(',').map(Number)
  const counts: Counts = { blobs: blobs! }
  return { counts, has_all: released! < RELEASED_AT_ONCE_MAX }
}

/** Deletes some blobs of a project that is being erased, and their chunks. */
export async function eraseSomeBlobs({ database, project_id }: Tenant, ids: string[]): Promise<ErasedStep> {
  const rows = await database.query(ERASE_BLOBS, [project_id, ids, DELETED_BYTES_MAX])
  const objects = rows.filter((row) => row.in_object_store === 't').map((row) => row.id!)
  if (objects.length > 0) await database.query(NOTE_OBJECTS, [project_id, objects])
  const gone = new Set(rows.map((row) => row.id))
  return { counts: { blobs: gone.size }, remains: [], left: ids.filter((id) => !gone.has(id)) }
}
