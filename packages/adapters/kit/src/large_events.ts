import type { NewEntry, TimelineItem } from '@annals/client'
import { BODY_BYTES_MAX, byteLength } from './batches.js'
import { unescapeJson } from './escape.js'
import { stableId } from './stable_names.js'

export const PART_TYPE = 'adapter.part'
/** What stands in the place of an event's data: the ids of the events whose texts, joined, are the data as JSON. */
const PARTS_FIELD = 'adapter_parts'
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
  const texts = cutText(JSON.stringify(event.data), Math.floor(part_bytes_max / UNIT_BYTES_MAX))
  const parts = texts.map((text, index) => ({
    kind: 'event' as const,
    type: PART_TYPE,
    id: stableId('part', event.id.toLowerCase(), `${index}`),
    data: { text },
  }))
  return [...parts, { ...event, data: { [PARTS_FIELD]: parts.map(({ id }) => id) } }]
}

/** The ids of an event's parts, or undefined if it has none. */
export function partsOf(data: object): string[] | undefined {
  return (data as { [PARTS_FIELD]?: string[] })[PARTS_FIELD]
}

/** The data of events as it was given: large ones put together, escapes undone. Give it events in order of their log. */
export class LargeEventReader {
  readonly #texts = new Map<string, string>()

  /** An event's data; undefined for a part of one that is yet to come. */
  read(event: Extract<TimelineItem, { kind: 'event' }>): Record<string, unknown> | undefined {
    const data = unescapeJson(event.data)
    if (event.type === PART_TYPE) {
      this.#texts.set(event.id, (data as { text: string }).text)
      return undefined
    }
    const parts = partsOf(data)
    if (parts === undefined) return data
    return JSON.parse(parts.map((id) => this.#texts.get(id) ?? '').join('')) as Record<string, unknown>
  }
}

/** Pieces of at most `units_max` UTF-16 units, none of which ends within a pair of surrogates. */
function cutText(text: string, units_max: number): string[] {
  const pieces: string[] = []
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + units_max, text.length)
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to--
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
