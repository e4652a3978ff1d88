import type { NewEntry } from '@annals/client'
import { bytePlaces, type MessageFormat } from '@annals/messages'

/** Most bytes of a request's body as the service is set by default: `ANNALS_BODY_BYTES_MAX`. */
export const BODY_BYTES_MAX = 1024 * 1024
/** Longer base64 is kept apart. */
const TAKEN_OUT_MIN = 32 * 1024
const DATA_URL = /^data:[^,]{0,240};base64,/i
const BASE64 = /^(?:[A-Za-z0-9+/]+|[\w-]+)={0,2}$/

/** Bytes of an entry as JSON, without the base64 that the service takes out of messages and keeps apart. */
export function byteLengthOf(entry: NewEntry): number {
  return byteLength(entry) - attachedLength(entry)
}

/** Characters of base64 that the service takes out of a message. */
export function attachedLength(entry: NewEntry): number {
  if (entry.kind !== 'message') return 0
  let length = 0
  for (const { holder, key } of bytePlaces((entry.format ?? 'openai') as MessageFormat, entry.blob)) {
    const text = holder[key]
    if (typeof text !== 'string' || text.length <= TAKEN_OUT_MIN) continue
    const base64 = DATA_URL.test(text) ? text.slice(text.indexOf(',') + 1) : text
    const isTaken = base64.length > TAKEN_OUT_MIN && base64.length % 4 === 0 && BASE64.test(base64)
    if (isTaken) length += base64.length
  }
  return length
}

/** Bytes of a value as JSON. */
export function byteLength(value: unknown): number {
  const text = JSON.stringify(value)
  let length = text.length
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    // JSON has no lone surrogates: each of a pair has two of its four bytes.
    if (unit > 0x7f) length += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  return length
}
