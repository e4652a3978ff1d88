import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { blobReferences, InvalidMessage } from '@annals/messages'
import { type AppendRequest, appendsOf, type BlobPlace } from './append_request.js'
import { FIND_REFERRED_BLOBS } from './look_up.js'

/** The blobs that a value refers to; needed only if its text may refer to any. @throws AnnalsError naming a reference that is malformed */
export function referencesIn(value: unknown, place: string): BlobPlace[] | undefined {
  try {
    const found = blobReferences(value, place)
    return found.length === 0
      ? undefined
      : found.map(({ reference, pointer }) => ({ sha256: reference.annals_blob, pointer }))
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    throw invalidRequest(`${error.pointer} ${error.reason}.`)
  }
}

/** @throws AnnalsError blob_missing if an entry refers to a blob that the project does not have */
export async function requireBlobs(database: Queryable, request: AppendRequest): Promise<void> {
  const { project_id } = request
  const entries = appendsOf(request).flatMap((append) => append.entries)
  const places = entries.flatMap(({ references = [] }) => references)
  if (places.length === 0) return
  const hashes = [...new Set(places.map(({ sha256 }) => sha256))]
  const rows = await database.query(FIND_REFERRED_BLOBS, [project_id, hashes])
  const known = new Set(rows.map((row) => row.sha256))
  const missing = places.find(({ sha256 }) => !known.has(sha256))
  if (missing) throw blobMissing(missing)
}

export function blobMissing({ pointer, sha256 }: BlobPlace): AnnalsError {
  return new AnnalsError(
    'blob_missing',
    `${pointer} refers to a blob that this project does not have. Send its bytes first: PUT /api/v1/blobs/${sha256}.`,
  )
}
