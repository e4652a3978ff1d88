import { createHash } from 'node:crypto'
import { AnnalsError } from '../errors.js'
import type { CheckedPiece } from '../lifecycle/verify/check.js'
import type { Database } from '../postgres/database.js'
import { type Blob, blobOf, findBlobs } from './blob_store.js'
import { keyOf, objectsOf } from './discard_objects.js'
import { LIST_OBJECTS } from './object_queries.js'

const AT_ONCE = 4

/** Reads the bytes of blobs that are in the object store, as those in the database are read. */
export async function* verifyObjects(database: Database, project_id: string): AsyncGenerator<CheckedPiece> {
  for (let after: string | null = null; ; ) {
    const rows = await database.query(LIST_OBJECTS, [project_id, after, AT_ONCE])
    const flaws = await Promise.all(rows.map((row) => flawOf(database, project_id, blobOf(row))))
    const shown = flaws.flatMap((detail, index) =>
      detail === undefined
        ? []
        : [{ check: 'blob_bytes', session_id: null, place: `blob ${rows[index]!.id}`, detail }],
    )
    const found = new Map(shown.length > 0 ? [['blob_bytes', shown.length]] : [])
    yield { rows: 0, counts: {}, findings: { shown, found } }
    if (rows.length < AT_ONCE) return
    after = rows.at(-1)!.id!
  }
}

/** What is wrong with an object, unless its blob is deleted meanwhile. */
async function flawOf(database: Database, project_id: string, blob: Blob): Promise<string | undefined> {
  const { id, bytes, sha256 } = blob
  const hash = createHash('sha256')
  let read = 0
  let flaw: string | undefined
  try {
    // One byte more than it should have.
    for await (const piece of objectsOf(database).get(keyOf(project_id, id), 0, bytes + 1)) {
      hash.update(piece)
      read += piece.length
    }
    if (read === bytes && hash.digest('hex') === sha256) return undefined
    flaw = `its object does not have the ${bytes} bytes with the SHA-256 ${sha256}`
  } catch (error) {
    if (!(error instanceof AnnalsError && error.error === 'blob_not_found')) throw error
    flaw = 'its object is missing'
  }
  const now = (await findBlobs(database, project_id, [sha256])).get(sha256)
  return now?.id === id ? flaw : undefined
}
