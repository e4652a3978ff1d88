import type { Queryable } from '../postgres/database.js'
import { COLLECT_BLOBS, FIND_PROJECTS_WITH_OLD_BLOBS } from './blob_queries.js'

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
