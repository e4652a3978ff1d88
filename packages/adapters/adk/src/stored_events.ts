import { createHash } from 'node:crypto'
import {
  escapeJson,
  readEventData,
  readWholeMessage,
  splitLargeEvent,
  splitLargeMessage,
  stableId,
} from '@annals/adapter-kit'
import type { Annals, NewEntry, TimelineItem } from '@annals/client'
import { InvalidMessage, readMessage } from '@annals/messages'
import type { Event } from '@google/adk'

const EVENT_TYPE = 'adk.event'

/**
 * What stores an event of ADK: a message if its content is one of Gemini's, otherwise an event. What is large is stored in parts.
 * The last entry is the event itself. The same event with the same content always has the same id.
 */
export function storedEvent(session_id: string, event: Event, body_bytes_max?: number): NewEntry[] {
  const json = JSON.stringify(event)
  const id = stableId(session_id, event.id, createHash('sha256').update(json).digest('hex'))
  const data = JSON.parse(json) as Record<string, unknown>
  const message = newMessage(data, id)
  const stored = message && splitLargeMessage(message, body_bytes_max)
  const asEvent = { kind: 'event' as const, type: EVENT_TYPE, id, data }
  return (stored ?? splitLargeEvent(asEvent, body_bytes_max)).map(escapeJson)
}

/** The event of ADK that an entry holds; undefined for one that holds none, or was retracted. */
export async function givenEvent(
  annals: Annals,
  session_id: string,
  item: TimelineItem,
): Promise<Event | undefined> {
  if (item.retracted_by !== undefined && item.retracted_by !== null) return undefined
  if (item.kind === 'message') {
    const { blob, meta } = await readWholeMessage(annals, session_id, item)
    const { adk } = meta as { adk?: Event }
    return adk && { ...adk, content: blob }
  }
  if (item.type !== EVENT_TYPE) return undefined
  return (await readEventData(annals, session_id, item)) as unknown as Event
}

/** What stores a name's value in the state of a session, a user or an app. The newest one counts. */
export function storedState(name: string, value: unknown): NewEntry {
  const data = { name, value: value ?? null }
  return escapeJson({ kind: 'event' as const, type: 'adk.state', key: stateKey(name), data })
}

export const STATE_PREFIX = 'state/'

/** Names have any length, keys at most 255 characters; most names are readable in theirs. */
function stateKey(name: string): string {
  const key = `${STATE_PREFIX}${escapeJson(name)}`
  return key.length <= 200 ? key : `${STATE_PREFIX}${stableId('adk/state', name)}`
}

function newMessage({ content, ...adk }: Record<string, unknown>, id: string) {
  try {
    readMessage('gemini', content)
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return undefined
  }
  const blob = content as object
  return { kind: 'message' as const, format: 'gemini' as const, id, blob, meta: { adk } }
}
