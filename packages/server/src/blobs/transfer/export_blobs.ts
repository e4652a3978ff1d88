import type { ExportPiece } from '../../lifecycle/transfer/export_line.js'
import type { Row, Tenant } from '../../postgres/database.js'
import { chunksOf, readBlob } from '../blob_store.js'
import { EXPORT_BLOB, EXPORT_CHUNK, EXPORT_REFERENCES } from './blob_transfer_queries.js'

const REFERENCES_AT_ONCE_MAX = 1_000

/**
 * The blobs of an export, each behind its chunks, and behind them the references. They stand behind the sessions, so that
 * what was referred to while these were written is among them. Of a user or a session, those that it refers to.
 */
export async function* exportBlobs(
  tenant: Tenant,
  { user, session_id }: { user?: string | undefined; session_id?: string | undefined },
): AsyncGenerator<ExportPiece> {
  const { database, project_id } = tenant
  const scope = [project_id, user ?? null, session_id ?? null]
  for (let after: string | null = null; ; ) {
    const [blob]: Row[] = await database.query(EXPORT_BLOB, [...scope, after])
    if (!blob) break
    after = blob.id!
    if (blob.in_object_store === 't') yield* chunksOfObject(tenant, blob)
    for (let n = 0; n < Number(blob.chunks); n++) {
      const [chunk] = await database.query(EXPORT_CHUNK, [project_id, blob.id!, n])
      // The blob was erased meanwhile.
      if (chunk) yield { lines: [chunk.line!], counts: {} }
    }
    yield { lines: [blob.line!], counts: { blobs: 1 } }
  }
  let after: (string | null)[] = [null, null, null]
  for (let found = REFERENCES_AT_ONCE_MAX; found === REFERENCES_AT_ONCE_MAX; ) {
    const rows = await database.query(EXPORT_REFERENCES, [...scope, ...after, REFERENCES_AT_ONCE_MAX])
    if (rows.length > 0)
      yield { lines: rows.map((row) => row.line!), counts: { blob_references: rows.length } }
    const { owner_id = null, seq = null, sha256 = null } = rows.at(-1) ?? {}
    after = [owner_id, seq, sha256]
    found = rows.length
  }
}

/** The bytes of an object, in lines as those of chunks in the database. */
async function* chunksOfObject(tenant: Tenant, { id, sha256, bytes }: Row): AsyncGenerator<ExportPiece> {
  const blob = { id: id!, sha256: sha256!, bytes: Number(bytes), in_object_store: true }
  let n = 0
  for await (const chunk of chunksOf(readBlob(tenant, blob))) {
    const line = { kind: 'blob_chunk', blob_id: blob.id, n, data: chunk.toString('base64') }
    yield { lines: [JSON.stringify(line)], counts: {} }
    n += 1
  }
}
