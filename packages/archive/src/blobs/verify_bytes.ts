import { createHash } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import { WrongBytes } from '@annals/kits/outgoing/object_store.js'
import type { Tenant } from '@annals/kits/postgres/database.js'
import { type Blob, blobOf, findBlobs, readBlob } from 'annals/dist/blobs/blob_store.js'
import type { CheckedPiece } from '../verify/findings.js'
import { LIST_BLOBS } from './blob_transfer_queries.js'

const AT_ONCE = 4

/** Reads the bytes of all blobs, wherever they are, and holds them against their hashes. */
export async function* verifyBytes(tenant: Tenant): AsyncGenerator<CheckedPiece> {
  const { database, project_id } = tenant
  for (let after: string | null = null; ; ) {
    const rows = await database.query(LIST_BLOBS, [project_id, after, AT_ONCE])
    const flaws = await Promise.all(rows.map((row) => flawOf(tenant, blobOf(row))))
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

/** The fault in a blob's bytes; none if the blob is deleted in the meantime. */
async function flawOf(tenant: Tenant, blob: Blob): Promise<string | undefined> {
  const { id, bytes, sha256 } = blob
  if (await hasItsHash(tenant, blob)) return undefined
  const now = (await findBlobs(tenant, [sha256])).get(sha256)
  return now?.id === id ? `its ${bytes} bytes are missing, or do not have the SHA-256 ${sha256}` : undefined
}

export async function hasItsHash(tenant: Tenant, blob: Blob): Promise<boolean> {
  const hash = createHash('sha256')
  let bytes = 0
  try {
    for await (const piece of readBlob(tenant, blob)) {
      hash.update(piece)
      bytes += piece.length
    }
  } catch (error) {
    if (error instanceof WrongBytes) return false
    if (error instanceof AnnalsError && error.error === 'blob_not_found') return false
    throw error
  }
  return bytes === blob.bytes && hash.digest('hex') === blob.sha256
}
