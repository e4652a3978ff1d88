import type { Counts, Dependents, ErasedStep } from '../lifecycle/table.js'
import type { Queryable } from '../postgres/database.js'
import { DELETED_BYTES_MAX, ERASE_BLOBS, RELEASE_BLOBS, RELEASED_AT_ONCE_MAX } from './blob_queries.js'
import { NOTE_OBJECTS } from './object_queries.js'

/** Deletes references of owners that are being erased, and with each the blob that nothing else refers to. */
export const releaseSome: Dependents['eraseSome'] = async (connection, project_id, owner_ids) => {
  const parameters = [project_id, owner_ids, RELEASED_AT_ONCE_MAX]
  const [row] = await connection.query(RELEASE_BLOBS.statement, parameters)
  const [released, blobs] = row!.answer!.split(',').map(Number)
  const counts: Counts = { blobs: blobs! }
  return { counts, has_all: released! < RELEASED_AT_ONCE_MAX }
}

/** Deletes some blobs of a project that is being erased, and their chunks. */
export async function eraseSomeBlobs(
  connection: Queryable,
  project_id: string,
  ids: string[],
): Promise<ErasedStep> {
  const rows = await connection.query(ERASE_BLOBS, [project_id, ids, DELETED_BYTES_MAX])
  const objects = rows.filter((row) => row.in_object_store === 't').map((row) => row.id!)
  if (objects.length > 0) await connection.query(NOTE_OBJECTS, [project_id, objects])
  const gone = new Set(rows.map((row) => row.id))
  return { counts: { blobs: gone.size }, remains: [], left: ids.filter((id) => !gone.has(id)) }
}
