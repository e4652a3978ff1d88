import type { FastifyRequest } from 'fastify'
import type { UsageDirectory } from '../projects/usage.js'
import { type Source, type StoredBlob, storeBlob } from './blob_store.js'

export async function storeBlobWithinQuota(
  usage: UsageDirectory,
  request: FastifyRequest,
  sha256: string,
  source: Source,
  bytes_max: number,
  length?: number,
): Promise<StoredBlob> {
  const { grant, project_id } = request
  const max = grant!.quotas.max_blob_bytes
  const room = max === undefined ? undefined : await usage.reserve(project_id, 'blob_bytes', bytes_max, max)
  try {
    const stored = await storeBlob(request, sha256, source, bytes_max, length)
    if (!stored.known) usage.stored(project_id, { blobs: 1, blob_bytes: stored.bytes }, room)
    return stored
  } finally {
    room?.settle({})
  }
}
