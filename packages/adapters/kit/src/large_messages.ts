import type { Annals, NewEntry, TimelineItem } from '@annals/client'
import { bytePlaces, type MessageFormat, readMessage } from '@annals/messages'
import { writeJson } from '@annals/messages/json'
import { unescapeJson } from './escape.js'
import { PARTS_FIELD, readParts, textParts } from './large_events.js'
import { BODY_BYTES_MAX, byteLength, byteLengthOf } from './sizes.js'

/** The service takes 64 KiB of meta. */
const META_BYTES_MAX = 60_000
/** Characters of a text that are kept in a message that is too large, at first; fewer if that is not enough. */
const SHOWN_LENGTH_MAX = 100_000
const SHOWN_LENGTH_MIN = 100

type Json = Record<string, unknown>
type MessageEntry = Extract<NewEntry, { kind: 'message' }>

/**
 * A message that one request cannot carry, or with more meta than the service takes, as several entries: parts, and then the
 * message, which names them. It stays a message, so that no call loses its result: its long texts are shortened and say how
 * long they are, and the parts have what was given. A smaller message stays as it is. Undefined if the shortened one could
 * not be read.
 */
export function splitLargeMessage(
  message: MessageEntry & { id: string },
  body_bytes_max = BODY_BYTES_MAX,
): NewEntry[] | undefined {
  const bytes_max = Math.floor(body_bytes_max / 2)
  const { blob, meta = {}, id } = message
  const format = (message.format ?? 'openai') as MessageFormat
  const isLarge = byteLengthOf({ ...message, meta: {} }) > bytes_max
  if (!isLarge && byteLength(meta) <= META_BYTES_MAX) return [message]
  const shown = isLarge ? shortened(format, blob as Json, bytes_max) : blob
  if (shown === undefined) return undefined
  const parts = textParts(id, writeJson({ meta, ...(isLarge && { blob }) }), bytes_max)
  return [...parts, { ...message, blob: shown, meta: { [PARTS_FIELD]: parts.map((part) => part.id) } }]
}

/** A stored message as it was passed: reassembled if it is large, and without escapes. */
export async function readWholeMessage(
  annals: Annals,
  session_id: string,
  { blob, meta }: Pick<Extract<TimelineItem, { kind: 'message' }>, 'blob' | 'meta'>,
): Promise<{ blob: Json; meta: Json }> {
  const ids = meta?.[PARTS_FIELD] as string[] | undefined
  const whole = ids === undefined ? {} : JSON.parse(await readParts(annals, session_id, ids))
  return { blob: unescapeJson(blob), meta: unescapeJson(meta), ...whole }
}

/** The message with its long texts shortened; bytes that the service keeps apart stay. */
function shortened(format: MessageFormat, blob: Json, bytes_max: number): Json | undefined {
  for (let length = SHOWN_LENGTH_MAX; length >= SHOWN_LENGTH_MIN; length = Math.floor(length / 8)) {
    const copy = structuredClone(blob)
    const kept = new Map<object, Set<string>>()
    for (const { holder, key } of bytePlaces(format, copy))
      kept.set(holder, (kept.get(holder) ?? new Set()).add(key))
    shortenIn(copy, length, kept)
    if (byteLengthOf({ kind: 'message', format, blob: copy }) > bytes_max) continue
    try {
      readMessage(format, copy)
      return copy
    } catch {
      return undefined
    }
  }
  return undefined
}

function shortenIn(holder: object, length: number, kept: ReadonlyMap<object, ReadonlySet<string>>): void {
  for (const [key, value] of Object.entries(holder)) {
    if (typeof value === 'object' && value !== null) shortenIn(value, length, kept)
    else if (typeof value === 'string' && value.length > length && !kept.get(holder)?.has(key)) {
      // No half of a surrogate pair.
      const end = /[\uD800-\uDBFF]/.test(value[length - 1]!) ? length - 1 : length
      Object.assign(holder, { [key]: `${value.slice(0, end)}… [${value.length} characters in all]` })
    }
  }
}
