import { createHash, type Hash } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import { WrongBytes } from '@annals/kits/outgoing/object_store.js'
import type { Row, Tenant } from '@annals/kits/postgres/database.js'
import { DISCARD_UPLOAD } from 'annals/dist/blobs/blob_queries.js'
import { blobOf, CHUNK_BYTES, chunksOf, findBlobs, readBlob } from 'annals/dist/blobs/blob_store.js'
import { absentBefore, type LineColumn } from '../columns.js'
import { type ExportLine, type ExportPiece, type LineFollower, wrongLine } from '../transfer/export_line.js'
import { jsonOf, type RestoreContext, type Tallies, tally } from '../transfer/restore_context.js'
import { EXPORT_BLOB, EXPORT_REFERENCES, RESTORE_BLOBS } from './blob_transfer_queries.js'
import { hasItsHash } from './verify_bytes.js'

const SHA256 = { takes: 'a SHA-256 in hex', fits: (value: unknown) => /^[0-9a-f]{64}$/.test(String(value)) }

/** The line of a blob. `lost`: why its bytes were not to be read when the file was written. */
export const BLOB_LINE = {
  id: 'uuid',
  sha256: { ...SHA256, type: 'text' },
  bytes: 'bigint',
  created_at: 'time',
  lost: absentBefore('text'),
} as const satisfies Record<string, LineColumn>

/** The lines of blobs, in addition to their own. */
export const BLOB_LINES: Record<string, { columns: Record<string, LineColumn>; key: readonly string[] }> = {
  blob_chunk: { columns: { blob_id: 'uuid', n: 'integer', data: 'text' }, key: ['blob_id', 'n'] },
}

interface FollowedBlob {
  id: string
  chunks: number
  bytes: number
  hash: Hash
  is_full: boolean
}

/** Follows the chunks of one blob after the other to the blob's own line, which gets what is wrong with them. */
export class BlobFollower implements LineFollower {
  private open: FollowedBlob | undefined

  follow({ kind, number, record }: Omit<ExportLine, 'end_offset'>): { flaw: string | undefined } | undefined {
    if (kind === 'blob_chunk') return this.add(number, record as { blob_id: string; n: number; data: string })
    const { open } = this
    if (kind === 'blob') {
      this.open = undefined
      return { flaw: flawOf(record as { id: string; sha256: string; bytes: number; lost?: string }, open) }
    }
    this.finish(number)
    return undefined
  }

  /** @throws StartError for chunks without a blob */
  finish(number: number): void {
    if (this.open)
      throw wrongLine(
        number,
        `before this line, the line of blob ${this.open.id} is missing: its chunks are there.`,
      )
  }

  private add(number: number, { blob_id, n, data }: { blob_id: string; n: number; data: string }) {
    if (this.open && this.open.id !== blob_id) this.finish(number)
    this.open ??= { id: blob_id, chunks: 0, bytes: 0, hash: createHash('sha256'), is_full: true }
    const { open } = this
    if (n !== open.chunks) throw wrongLine(number, `n must be ${open.chunks}; it is ${n}.`)
    const bytes = Buffer.from(data, 'base64')
    if (bytes.toString('base64') !== data) throw wrongLine(number, 'data must be base64.')
    if (bytes.length === 0 || bytes.length > CHUNK_BYTES)
      throw wrongLine(number, `data must be 1 to ${CHUNK_BYTES} bytes; it is ${bytes.length}.`)
    if (!open.is_full) throw wrongLine(number, `the chunk before it must have ${CHUNK_BYTES} bytes.`)
    open.is_full = bytes.length === CHUNK_BYTES
    open.chunks += 1
    open.bytes += bytes.length
    open.hash.update(bytes)
    return { flaw: undefined }
  }
}

/** Why a blob cannot be stored, in words that follow its name. */
function flawOf(
  { id, sha256, bytes, lost }: { id: string; sha256: string; bytes: number; lost?: string },
  open: FollowedBlob | undefined,
): string | undefined {
  if (lost !== undefined) return `its bytes were lost before the file was written: ${lost}`
  if (open && open.id !== id) return 'the chunks before it are those of another blob'
  const found = open?.bytes ?? 0
  if (found !== bytes) return `the chunks before it have ${found} bytes, and it has ${bytes}`
  if ((open?.hash ?? createHash('sha256')).digest('hex') !== sha256)
    return 'the chunks before it do not have its SHA-256'
  return undefined
}

/**
 * Restores chunks as an upload, which becomes a blob with its own line, if the hash is right: one whose bytes are not there
 * is a conflict, and the rest is restored. A blob that the project has is kept as it is.
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
  const tallies = { stored: 0, known: 0, bytes: 0 }
  for (const line of blobs) {
    const { id, sha256, bytes } = line.record as { id: string; sha256: string; bytes: number }
    const { flaw } = line.followed as { flaw: string | undefined }
    if (known.has(sha256)) tallies.known += 1
    else if (flaw === undefined && (dry_run || (await finishBlob(context, line)))) {
      tallies.stored += 1
      tallies.bytes += bytes
      continue
    } else
      context.conflicts.push({
        kind: 'blob',
        id: sha256,
        reason: `line ${line.number}: ${flaw ?? 'an upload that ended meanwhile has its id'}`,
      })
    if (!dry_run) await database.query(DISCARD_UPLOAD.statement, [project_id, id])
  }
  return { blobs: tallies }
}

/** Makes an upload the blob of a line, if its chunks have been stored as they are in the file. */
async function finishBlob({ database, project_id }: RestoreContext, line: ExportLine): Promise<boolean> {
  const { id, sha256, bytes, created_at } = line.record as Record<string, string>
  if (Number(bytes) === 0) await database.query(RESTORE_BLOBS.uploads, [project_id, jsonOf([line])])
  const upload = { id: id!, sha256: sha256!, bytes: Number(bytes), in_object_store: false }
  if (!(await hasItsHash({ database, project_id }, upload))) return false
  return (
    (await database.query(RESTORE_BLOBS.finish, [project_id, id!, sha256!, bytes!, created_at!])).length > 0
  )
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
 * The blobs of an export, each after its chunks, and after them the references. Of a user or a session, those that it
 * refers to.
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
    yield* exportBlob(tenant, blob)
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

const OTHER_BYTES = 'they do not have the SHA-256 that they had.'

/** The chunks of a blob, wherever its bytes are, and its line: which says so if they are not those of its hash. */
async function* exportBlob(tenant: Tenant, row: Row): AsyncGenerator<ExportPiece> {
  const blob = blobOf(row)
  const { id, sha256, bytes } = blob
  const hash = createHash('sha256')
  let n = 0
  let read = 0
  let lost: string | undefined
  try {
    for await (const chunk of chunksOf(readBlob(tenant, blob))) {
      hash.update(chunk)
      read += chunk.length
      const line = { kind: 'blob_chunk', blob_id: id, n, data: chunk.toString('base64') }
      yield { lines: [JSON.stringify(line)], counts: {} }
      n += 1
    }
    if (read !== bytes || hash.digest('hex') !== sha256) lost = OTHER_BYTES
  } catch (error) {
    const isGone = error instanceof AnnalsError && error.error === 'blob_not_found'
    if (!isGone && !(error instanceof WrongBytes)) throw error
    lost = isGone ? 'they are not where they were stored.' : OTHER_BYTES
  }
  const line = { kind: 'blob', id, sha256, bytes, created_at: row.created_at, lost }
  yield { lines: [JSON.stringify(line)], counts: { blobs: 1, ...(lost && { lost_blobs: 1 }) } }
}
