import { findBlob, readBlob } from '../../blobs/blob_store.js'
import type { Queryable } from '../../postgres/database.js'

/** A mark of a blob as JSON has it. Behind another backslash, it is what a caller wrote. */
const MARK = /(?<!\\)\\u0000([0-9a-f]{64})/

/**
 * Puts the bytes of blobs, as base64, where texts of JSON have marks of them: a chunk at a time, so that no more than one
 * is in memory. @throws AnnalsError blob_not_found
 */
export async function* withBlobBytes(
  database: Queryable,
  project_id: string,
  texts: AsyncIterable<string>,
): AsyncGenerator<string> {
  for await (const text of texts) {
    if (!text.includes('\\u0000')) {
      yield text
      continue
    }
    const pieces = text.split(MARK)
    for (const [at, piece] of pieces.entries()) {
      if (at % 2 === 0) yield piece
      else yield* base64Of(database, project_id, piece)
    }
  }
}

/** A blob in base64. A piece of it ends with a group of three bytes, but for the last. */
async function* base64Of(database: Queryable, project_id: string, sha256: string): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  for await (const chunk of readBlob(database, project_id, await findBlob(database, project_id, sha256))) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    const whole = bytes.length - (bytes.length % 3)
    yield bytes.toString('base64', 0, whole)
    rest = Buffer.from(bytes.subarray(whole))
  }
  yield rest.toString('base64')
}
