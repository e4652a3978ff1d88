import type { Column } from '../../lifecycle/columns.js'
import { type ExportLine, type ExportPiece, wrongLine } from '../../lifecycle/transfer/export_line.js'
import { jsonOf, type RestoreContext, type Tallies, tally } from '../../lifecycle/transfer/restore_context.js'
import type { Row, Tenant } from '../../postgres/database.js'
import { DISCARD_UPLOAD } from '../blob_queries.js'
import { chunksOf, findBlobs, readBlob } from '../blob_store.js'
import { hasItsHash } from '../verify_bytes.js'
import { EXPORT_BLOB, EXPORT_CHUNK, EXPORT_REFERENCES, RESTORE_BLOBS } from './blob_transfer_queries.js'

/** The lines of blobs beside their own. */
export const BLOB_LINES: Record<string, { columns: Record<string, Column>; key: readonly string[] }> = {
  blob_chunk: { columns: { blob_id: 'uuid', n: 'integer', data: 'text' }, key: ['blob_id', 'n'] },
}

/**
 * Restores chunks as an upload, which becomes a blob with its own line, if the hash is right. A blob that the project has
 * is kept as it is. @throws StartError
 */
export async function restoreBlobs(context: RestoreContext, lines: ExportLine[]): Promise<Tallies> {
  const { database, project_id, dry_run } = context
  const chunks = lines.filter(({ kind }) => kind === 'blob_chunk')
  if (chunks.length > 0 && !dry_run) {
    await database.query(RESTORE_BLOBS.uploads, [project_id, jsonOf(chunks)])
    await database.query(RESTORE_BLOBS.chunks, [project_id, jsonOf(chunks)])
  }
  const blobs = lines.filter(({ kind }) => kind === 'blob')
  const hashes = blobs.map(({ record }) => record.sha256 as string)
  const known = await findBlobs(context, hashes)
  for (const line of dry_run ? [] : blobs) await restoreBlob(context, line, known)
  const fresh = blobs.filter(({ record }) => !known.has(record.sha256 as string))
  const bytes = fresh.reduce((sum, { record }) => sum + Number(record.bytes), 0)
  return { blobs: { stored: fresh.length, known: known.size, bytes } }
}

async function restoreBlob(
  { database, project_id }: RestoreContext,
  line: ExportLine,
  known: ReadonlyMap<string, unknown>,
): Promise<void> {
  const { id, sha256, bytes, created_at } = line.record as Record<string, string>
  if (known.has(sha256!)) {
    await database.query(DISCARD_UPLOAD.statement, [project_id, id!])
    return
  }
  if (Number(bytes) === 0) await database.query(RESTORE_BLOBS.uploads, [project_id, jsonOf([line])])
  const upload = { id: id!, sha256: sha256!, bytes: Number(bytes), in_object_store: false }
  const isWhole = await hasItsHash({ database, project_id }, upload)
  const finished = await database.query(RESTORE_BLOBS.finish, [project_id, id!, sha256!, bytes!, created_at!])
  if (!isWhole || finished.length === 0)
    throw wrongLine(line.number, 'the chunks before it are not those of this blob.')
}

/** Restores the references of those entries and skills that there are. */
export async function restoreReferences(
  { database, project_id, dry_run }: RestoreContext,
  lines: ExportLine[],
): Promise<Tallies> {
  if (dry_run) return {}
  const owners = [...new Set(lines.map(({ record }) => record.owner_id as string))]
  await database.query(RESTORE_BLOBS.lock, [project_id, owners])
  await database.query(RESTORE_BLOBS.lock_skills, [project_id, owners])
  const stored = await database.query(RESTORE_BLOBS.references, [project_id, jsonOf(lines)])
  return { blob_references: tally(lines.length, stored.length) }
}

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
