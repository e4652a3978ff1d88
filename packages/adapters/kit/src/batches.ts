import { isDeepStrictEqual } from 'node:util'
import type { NewEntry } from '@annals/client'
import { attachedLength, BODY_BYTES_MAX, byteLength } from './sizes.js'

/** Most entries of one request. */
export const BATCH_ENTRIES_MAX = 1_000
/** Most base64 of one request that is kept apart: the service takes 25 MiB of bytes. */
const ATTACHMENTS_MAX = 25 * 1024 * 1024
/** Room in a request around its entries, generously. */
const ENVELOPE_BYTES = 1_024

/** Entries that cannot be stored as they were given. Nothing of them was stored. */
export class UnstorableEntries extends Error {
  override readonly name = 'UnstorableEntries'
}

/**
 * The entries without those that repeat an earlier one's id.
 * @throws UnstorableEntries if an id is repeated with other content
 */
export function withoutRepeatedIds(entries: readonly NewEntry[]): NewEntry[] {
  const byId = new Map<string, NewEntry>()
  return entries.filter((entry) => {
    if (entry.id === undefined) return true
    const id = entry.id.toLowerCase()
    const earlier = byId.get(id)
    if (earlier === undefined) {
      byId.set(id, entry)
      return true
    }
    if (isDeepStrictEqual({ ...earlier, id }, { ...entry, id })) return false
    throw new UnstorableEntries(`Two entries of one batch have the id ${entry.id} and different content.`)
  })
}

/**
 * Cuts entries into batches that one request each can carry.
 * @throws UnstorableEntries if one entry alone is larger than a body may be
 */
export function cutIntoBatches(entries: readonly NewEntry[], body_bytes_max = BODY_BYTES_MAX): NewEntry[][] {
  const room = body_bytes_max - ENVELOPE_BYTES
  const batches: NewEntry[][] = []
  let batch: NewEntry[] = []
  let bytes = 0
  let attachments = 0
  for (const [index, entry] of entries.entries()) {
    const attached = attachedLength(entry)
    const size = byteLength(entry) - attached + 1
    if (size > room) {
      const named = entry.id === undefined ? '' : ` (id ${entry.id})`
      throw new UnstorableEntries(
        `Entry ${index}${named} has ${size} bytes; a request carries at most ${room}. Raise ANNALS_BODY_BYTES_MAX and body_bytes_max.`,
      )
    }
    const isFull =
      batch.length === BATCH_ENTRIES_MAX || bytes + size > room || attachments + attached > ATTACHMENTS_MAX
    if (isFull && batch.length > 0) {
      batches.push(batch)
      batch = []
      bytes = 0
      attachments = 0
    }
    batch.push(entry)
    bytes += size
    attachments += attached
  }
  return batch.length > 0 ? [...batches, batch] : batches
}
