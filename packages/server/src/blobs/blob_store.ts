import { createHash } from 'node:crypto'
import { AnnalsError, invalidRequest, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import { WrongBytes } from '@annals/kits/outgoing/object_store.js'
import type { Queryable, Row, Tenant } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation } from '@annals/kits/postgres/database_errors.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import type { MediaFacts } from '@annals/messages'
import { requireProject } from '../projects/projects.js'
import type { Asset } from './asset_urls.js'
import {
  ADD_BLOB_CHUNK,
  BEGIN_OBJECT,
  DISCARD_UPLOAD,
  FIND_BLOB_OF,
  FIND_BLOBS,
  FINISH_BLOB,
  READ_BLOB_CHUNKS,
  TOUCH_BLOB,
} from './blob_queries.js'
import { discardObjects, keyOf, objectsOf } from './discard_blobs.js'

export const CHUNK_BYTES = 256 * 1024
const READ_AT_ONCE = 3
/** Memory that storing or reading a blob of any size takes: a chunk as received, as sent, and as text. */
export const STORE_BYTES = 4 * CHUNK_BYTES
export const READ_BYTES = 5 * READ_AT_ONCE * CHUNK_BYTES

const NOTHING = Buffer.alloc(0)

export type Source = AsyncIterable<Buffer> | Iterable<Buffer>

export interface Blob {
  id: string
  sha256: string
  bytes: number
  in_object_store: boolean
}

/** How much was stored. `known`: the project has had the blob before, and its bytes were not read to the end. */
export interface StoredBlob {
  bytes: number
  known: boolean
}

export async function touchBlob(
  { database, project_id }: Tenant,
  sha256: string,
): Promise<number | undefined> {
  const bytes = await call(database, TOUCH_BLOB, project_id, sha256)
  return bytes === null ? undefined : Number(bytes)
}

/**
 * Stores bytes under their hash, a chunk at a time, so that no more than a chunk is in memory. Nobody sees them before the
 * last one is stored and the hash is right. Two at once may store the same blob; one of them keeps it.
 *
 * Inside a transaction, all of it becomes visible with the commit. Where the database has an object store, the bytes go
 * there, if their length is known.
 * @throws AnnalsError invalid_request if the bytes have another hash, payload_too_large, request_timeout
 */
export async function storeBlob(
  tenant: Tenant,
  sha256: string,
  source: Source,
  bytes_max = Number.POSITIVE_INFINITY,
  length?: number,
): Promise<StoredBlob> {
  const { database, project_id } = tenant
  if (database.objects && length) return storeObject(tenant, sha256, source, length)
  const upload = { id: newId(), chunks: 0, bytes: 0, hash: createHash('sha256') }
  try {
    let last: Buffer = NOTHING
    for await (const chunk of chunksOf(source)) {
      if (last.length > 0) {
        await call(database, ADD_BLOB_CHUNK, project_id, upload.id, upload.chunks, last)
        upload.chunks += 1
      }
      upload.bytes += chunk.length
      if (upload.bytes > bytes_max) throw blobTooLarge(bytes_max)
      upload.hash.update(chunk)
      last = chunk
    }
    const found = upload.hash.digest('hex')
    if (found !== sha256) throw wrongHash(sha256, found)
    const { id, chunks, bytes } = upload
    const answer = await call(database, FINISH_BLOB, project_id, id, chunks, last, sha256, bytes)
    if (!answer) throw givenUp()
    return { bytes, known: answer === 'known' }
  } catch (error) {
    // Housekeeping deletes the rest later.
    if (upload.chunks > 0) await call(database, DISCARD_UPLOAD, project_id, upload.id).catch(() => {})
    if (!isForeignKeyViolation(error)) throw error
    await requireProject(tenant)
    throw givenUp()
  }
}

/**
 * Stores bytes in the object store. The row of the upload is there before the object, so that housekeeping finds whatever
 * is left of an upload that ends in between.
 */
async function storeObject(
  tenant: Tenant,
  sha256: string,
  source: Source,
  length: number,
): Promise<StoredBlob> {
  const { database, project_id } = tenant
  const objects = objectsOf(database)
  const id = newId()
  const key = keyOf(project_id, id)
  let answer: string | null | undefined
  try {
    await database.query(BEGIN_OBJECT, [project_id, id])
    const exact = checked(upTo(source, length), sha256, (found) => wrongHash(sha256, found))
    await objects.put(key, exact, length, sha256)
    answer = await call(database, FINISH_BLOB, project_id, id, 1, NOTHING, sha256, length)
    if (answer) return { bytes: length, known: answer === 'known' }
    // Its row has gone, and was taken for all that there was.
    await objects.delete(key)
    throw givenUp()
  } catch (error) {
    // Unless it is a blob by now: the answer may have been lost.
    await call(database, DISCARD_UPLOAD, project_id, id).catch(() => {})
    if (!isForeignKeyViolation(error)) throw error
    await requireProject(tenant)
    throw givenUp()
  } finally {
    if (answer !== 'stored') await discardObjects(tenant).catch(() => {})
  }
}

async function* upTo(source: Source, bytes_max: number): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of source) {
    bytes += piece.length
    if (bytes > bytes_max) throw blobTooLarge(bytes_max)
    yield piece
  }
}

/** The pieces of a source, the last of them once all have the hash: nobody gets other bytes as a whole. */
async function* checked(
  source: Source,
  sha256: string,
  wrong: (found: string) => AnnalsError,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let last: Buffer = NOTHING
  for await (const piece of source) {
    if (last.length > 0) yield last
    hash.update(piece)
    last = piece
  }
  const found = hash.digest('hex')
  if (found !== sha256) throw wrong(found)
  yield last
}

export async function findBlobOf(
  database: Queryable,
  { project_id, owner_id, sha256 }: Asset,
  owners: keyof typeof FIND_BLOB_OF,
): Promise<Blob> {
  const [row] = await database.query(FIND_BLOB_OF[owners], [project_id, owner_id, sha256])
  if (!row) throw notFound('blob')
  return blobOf(row)
}

/** Those of some blobs that the project has, by their hashes. */
export async function findBlobs(
  { database, project_id }: Tenant,
  hashes: readonly string[],
): Promise<Map<string, Blob>> {
  const rows = await database.query(FIND_BLOBS, [project_id, [...new Set(hashes)]])
  return new Map(rows.map((row) => [row.sha256!, blobOf(row)]))
}

export function blobOf({ id, sha256, bytes, in_object_store }: Row): Blob {
  return { id: id!, sha256: sha256!, bytes: Number(bytes), in_object_store: in_object_store === 't' }
}

export async function findBlob(tenant: Tenant, sha256: string): Promise<Blob> {
  const blob = (await findBlobs(tenant, [sha256])).get(sha256)
  if (!blob) throw notFound('blob')
  return blob
}

/**
 * The bytes from `from` to before `to`, a chunk at a time. @throws AnnalsError blob_not_found when the blob is deleted
 * meanwhile: what was read cannot be completed
 */
export async function* readBlob(
  { database, project_id }: Tenant,
  blob: Blob,
  from = 0,
  to = blob.bytes,
): AsyncGenerator<Buffer> {
  if (blob.in_object_store) {
    if (to === from) return
    const { sha256, bytes } = blob
    const pieces = objectsOf(database).get(keyOf(project_id, blob.id), from, to, bytes)
    yield* to - from < bytes ? pieces : checked(pieces, sha256, () => new WrongBytes())
    return
  }
  const last = Math.ceil(to / CHUNK_BYTES) - 1
  for (let n = Math.floor(from / CHUNK_BYTES); n <= last; n += READ_AT_ONCE) {
    const wanted = Math.min(READ_AT_ONCE, last - n + 1)
    const rows = await database.query(READ_BLOB_CHUNKS, [project_id, blob.id, n, n + wanted - 1])
    if (rows.length < wanted) throw notFound('blob')
    for (const [index, { data }] of rows.entries()) {
      const start = (n + index) * CHUNK_BYTES
      yield Buffer.from(data!, 'hex').subarray(Math.max(0, from - start), to - start)
    }
  }
}

/**
 * Cuts a stream into chunks of the same size; the last one may be shorter. A chunk is overwritten by the next but one: two
 * buffers serve for all, however long the stream is.
 */
export async function* chunksOf(source: Source): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES)
  let other = Buffer.allocUnsafeSlow(CHUNK_BYTES)
  let length = 0
  for await (const piece of source) {
    for (let at = 0; at < piece.length; ) {
      const copied = piece.copy(chunk, length, at)
      at += copied
      length += copied
      if (length < CHUNK_BYTES) continue
      yield chunk
      ;[chunk, other] = [other, chunk]
      length = 0
    }
  }
  if (length > 0) yield chunk.subarray(0, length)
}

export function blobTooLarge(bytes_max: number): AnnalsError {
  return new AnnalsError('payload_too_large', `A blob has at most ${bytes_max} bytes. Send a smaller one.`)
}

function wrongHash(given: string, found: string): AnnalsError {
  return invalidRequest(`The SHA-256 of the body is ${found}, but the path has ${given}. Nothing was stored.`)
}

function givenUp(): AnnalsError {
  return new AnnalsError(
    'request_timeout',
    'The upload took too long. Nothing was stored; send it again, faster.',
  )
}

/** Of longer PDFs only the number of bytes is known. */
const PDF_BYTES_MAX = 32 * 1024 * 1024

/** Facts read from the bytes of blobs; blobs that the project does not have are left out. */
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
