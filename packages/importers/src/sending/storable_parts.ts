import { escapeJson, mayNeedEscapes, splitLargeEvent, splitLargeMessage } from '@annals/adapter-kit/large'
import type { NewEntry } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import type { ImportedEntry } from '../records.js'

/** An entry whose JSON is no longer is never split: even at three bytes a character, its content and its meta are small enough. */
const WHOLE_LENGTH_MAX = 16 * 1024

/** An entry as the service takes it, or a part of one, with the length of its JSON. */
export interface StorablePart {
  part: NewEntry
  length: number
}

export function storableParts(entry: ImportedEntry): StorablePart[] {
  const json = writeJson(entry)
  if (json.length <= WHOLE_LENGTH_MAX && !mayNeedEscapes(json)) return [{ part: entry, length: json.length }]
  return splitEntry(entry).map((part) => ({ part, length: writeJson(part).length }))
}

/** An entry without what PostgreSQL cannot hold, and in parts if it is too large. */
function splitEntry(entry: ImportedEntry): NewEntry[] {
  const escaped = escapeJson(entry)
  if (escaped.kind === 'event') return splitLargeEvent(escaped)
  const parts = splitLargeMessage(escaped)
  if (parts) return parts
  const { id, format, blob, meta, occurred_at, key } = escaped
  const at = { ...(occurred_at !== undefined && { occurred_at }), ...(key !== undefined && { key }) }
  return splitLargeEvent({
    kind: 'event',
    id,
    type: `source.message.${format}`,
    data: { raw: blob, meta },
    ...at,
  })
}
