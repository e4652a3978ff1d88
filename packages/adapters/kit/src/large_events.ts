import type { Annals, NewEntry, TimelineItem } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import { unescapeJson } from './escape.js'
import { readByIds } from './read_by_ids.js'
import { BODY_BYTES_MAX, byteLength } from './sizes.js'
import { stableId } from './stable_names.js'

/** The type of an event that is a part of another event's data; it means nothing by itself. */
export const PART_TYPE = 'adapter.part'
/** What stands in the place of an event's data: the ids of the events whose texts, joined, are the data as JSON. */
export const PARTS_FIELD = 'adapter_parts'
/** Most bytes of UTF-8 for one UTF-16 unit. Of ASCII, parts could be three times larger. */
const UNIT_BYTES_MAX = 3

type EventEntry = Extract<NewEntry, { kind: 'event' }>
/** An event with an id of its own, which the ids of its parts are made of. */
export type NewEventWithId = EventEntry & { id: string }

/**
 * An event that one request cannot carry, as several: its parts, and then the event, which names them. Parts that are
 * left alone because the event was not stored mean nothing. A smaller event stays as it is.
 */
export function splitLargeEvent(event: NewEventWithId, body_bytes_max = BODY_BYTES_MAX): EventEntry[] {
  const part_bytes_max = Math.floor(body_bytes_max / 2)
  if (byteLength(event) <= part_bytes_max) return [event]
  const parts = textParts(event.id, writeJson(event.data), part_bytes_max)
  return [...parts, { ...event, data: { [PARTS_FIELD]: parts.map(({ id }) => id) } }]
}

/** A long text as parts of the entry with this id. */
export function textParts(of: string, text: string, part_bytes_max: number): NewEventWithId[] {
  return cutText(text, Math.floor(part_bytes_max / UNIT_BYTES_MAX)).map((piece, index) => ({
    kind: 'event' as const,
    type: PART_TYPE,
    id: stableId('part', of.toLowerCase(), `${index}`),
    data: { text: piece },
  }))
}

/** The text that parts hold. */
export async function readParts(annals: Annals, session_id: string, ids: readonly string[]): Promise<string> {
  const parts = await readByIds(annals, session_id, ids)
  return parts.map((part) => (part.kind === 'event' ? unescapeJson(part.data).text : '')).join('')
}

/** An event's data as it was given: put together if it is large, and without escapes. */
export async function readEventData(
  annals: Annals,
  session_id: string,
  event: Extract<TimelineItem, { kind: 'event' }>,
): Promise<Record<string, unknown>> {
  const data = unescapeJson(event.data)
  const ids = data[PARTS_FIELD] as string[] | undefined
  if (ids === undefined) return data
  return JSON.parse(await readParts(annals, session_id, ids))
}

/** Pieces of at most `units_max` UTF-16 units, none of which ends within a pair of surrogates. */
function cutText(text: string, units_max: number): string[] {
  const pieces: string[] = []
  for (let from = 0; from < text.length; ) {
    const end = from + units_max
    const to = end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1]!) ? end - 1 : end
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}
