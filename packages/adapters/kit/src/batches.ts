import { isDeepStrictEqual } from 'node:util'
import type { NewEntry } from '@annals/client'

/** Most entries of one request. */
export const BATCH_ENTRIES_MAX = 1_000
/** Most bytes of a request's body as the service is set by default: `ANNALS_BODY_BYTES_MAX`. */
export const BODY_BYTES_MAX = 1024 * 1024
/** What a request has around its entries, generously. */
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
  for (const [index, entry] of entries.entries()) {
    const size = byteLength(entry) + 1
    if (size > room) {
      const named = entry.id === undefined ? '' : ` (id ${entry.id})`
      throw new UnstorableEntries(
        `Entry ${index}${named} has ${size} bytes; a request carries at most ${room}. Raise ANNALS_BODY_BYTES_MAX and body_bytes_max.`,
      )
    }
    if (batch.length === BATCH_ENTRIES_MAX || bytes + size > room) {
      batches.push(batch)
      batch = []
      bytes = 0
    }
    batch.push(entry)
    bytes += size
  }
  return batch.length > 0 ? [...batches, batch] : batches
}

/** Bytes of a value as JSON. */
export function byteLength(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
