import { randomUUID } from 'node:crypto'
import {
  PART_TYPE,
  readEventData,
  readWholeMessage,
  splitLargeEvent,
  splitLargeMessage,
  stableId,
} from '@annals/adapter-kit'
import type { Annals, NewEntry, TimelineItem } from '@annals/client'
import { InvalidMessage, readMessage } from '@annals/messages'
import type { SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'

/** What the types of events begin with. The rest is the entry's own type. */
const TYPE_PREFIX = 'claude.'
const TYPE_LENGTH_MAX = 200
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/**
 * An id for each entry of a batch, so that a batch that is sent again stores nothing twice. An entry without a uuid is
 * named after the nearest entry that has one, by its distance and its content: where that one is a repetition, so is it.
 * In a batch without any uuid, `nonce` makes the ids new.
 */
export function entryIds(session_id: string, entries: readonly SessionStoreEntry[], nonce: string): string[] {
  const uuids = entries.map(({ uuid }) => uuid)
  const first = uuids.findIndex((uuid) => uuid !== undefined)
  let anchor = first
  return entries.map((entry, index) => {
    if (entry.uuid !== undefined) {
      anchor = index
      return idOfUuid(session_id, entry.uuid)
    }
    if (first === -1) return stableId(session_id, nonce, `${index}`)
    return stableId(session_id, 'beside', uuids[anchor]!, `${index - anchor}`, JSON.stringify(entry))
  })
}

/** The id of the entry of the log that holds a line of a transcript. */
export function idOfUuid(session_id: string, uuid: string): string {
  return UUID.test(uuid) ? uuid.toLowerCase() : stableId(session_id, 'uuid', uuid)
}

/**
 * What stores an entry: a message if it has one that Annals can read, so that it can be searched, rendered and counted
 * as one; otherwise an event. What is large is stored in parts.
 */
export function newEntries(
  entry: SessionStoreEntry,
  id: string,
  { as_messages, body_bytes_max }: { as_messages: boolean; body_bytes_max?: number | undefined },
): NewEntry[] {
  const message = as_messages ? newMessage(entry, id) : undefined
  const stored = message && splitLargeMessage(message, body_bytes_max)
  if (stored) return stored
  const type = `${TYPE_PREFIX}${entry.type}`.slice(0, TYPE_LENGTH_MAX)
  return splitLargeEvent({ kind: 'event' as const, type, id, data: entry }, body_bytes_max)
}

/** The transcript's entry that an entry of the log holds; undefined for one that holds none. */
export async function transcriptEntry(
  annals: Annals,
  session_id: string,
  item: TimelineItem,
): Promise<SessionStoreEntry | undefined> {
  // What was retracted in Annals is no longer part of the conversation.
  if (item.retracted_by !== undefined && item.retracted_by !== null) return undefined
  if (item.kind === 'message') {
    const { blob, meta } = await readWholeMessage(annals, session_id, item)
    const { claude } = meta as { claude?: SessionStoreEntry }
    return claude && { ...claude, message: blob }
  }
  if (item.type === PART_TYPE || !item.type.startsWith(TYPE_PREFIX)) return undefined
  return (await readEventData(annals, session_id, item)) as SessionStoreEntry
}

export function newNonce(): string {
  return randomUUID()
}

function newMessage(entry: SessionStoreEntry, id: string) {
  const { message, ...claude } = entry
  if (entry.type !== 'user' && entry.type !== 'assistant') return undefined
  try {
    readMessage('anthropic', message)
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return undefined
  }
  const blob = message as object
  return { kind: 'message' as const, format: 'anthropic' as const, id, blob, meta: { claude } }
}
