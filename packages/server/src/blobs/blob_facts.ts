import type { MediaFacts } from '@annals/messages'
import type { Tenant } from '../postgres/database.js'
import { CHUNK_BYTES, findBlobs, readBlob } from './blob_store.js'

/** Of longer PDFs only the number of bytes is known. */
const PDF_BYTES_MAX = 32 * 1024 * 1024

/** What the bytes of blobs say of themselves; those that the project does not have are left out. */
export async function readBlobFacts(
  tenant: Tenant,
  hashes: readonly string[],
  factsOf: (bytes: Uint8Array) => Promise<MediaFacts>,
): Promise<Array<[sha256: string, facts: MediaFacts]>> {
  const facts: Array<[string, MediaFacts]> = []
  for (const blob of (await findBlobs(tenant, hashes)).values()) {
    const beginning: Buffer[] = []
    for await (const chunk of readBlob(tenant, blob, 0, Math.min(blob.bytes, CHUNK_BYTES)))
      beginning.push(Buffer.from(chunk))
    let bytes = Buffer.concat(beginning)
    if (bytes.toString('latin1', 0, 5) === '%PDF-' && blob.bytes <= PDF_BYTES_MAX) {
      const all: Buffer[] = []
      for await (const chunk of readBlob(tenant, blob)) all.push(Buffer.from(chunk))
      bytes = Buffer.concat(all)
    }
    facts.push([blob.sha256, { ...(await factsOf(bytes)), bytes: blob.bytes }])
  }
  return facts
}
