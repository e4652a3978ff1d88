import { parseJson } from '@annals/messages/json'
import { AnnalsError } from '../../errors.js'
import { newId } from '../../ids.js'
import { elementSlices, memberSlice, memberTexts } from '../../json/slices.js'
import { type AppendedEntry, RETRACTION_TYPE } from '../../log/append/append_request.js'
import { messageEntry } from '../../log/append/message_entry.js'
import type { AppendEntriesBody } from '../../log/entry_schema.js'
import type { AddEventBody } from '../../log/event_schema.js'
import { checkObjectBytes } from '../request/json_parameters.js'

/** What is stored for an event. `bytes`: of its JSON, as it will be written. */
export function eventEntry(
  { type, key }: Pick<AddEventBody, 'type' | 'key'>,
  members: Map<string, string>,
  bytes: number,
  given?: string,
  place = '',
): AppendedEntry {
  if (type === RETRACTION_TYPE)
    throw new AnnalsError(
      'invalid_request',
      `${place}/type must not be ${RETRACTION_TYPE}: POST …/retractions retracts entries and appends this event.`,
    )
  return {
    id: given ?? newId(),
    id_given: given !== undefined,
    kind: 'event',
    type,
    format: null,
    role: null,
    key: key ?? null,
    bytes,
    tokens: 0,
    data: members.get('data')!,
    meta: null,
  }
}

/** The parts of a message that pass through unchanged. A meta of null counts as absent. */
export function messageMembers(
  format: string,
  members: Map<string, string>,
): Pick<AppendedEntry, 'kind' | 'type' | 'format' | 'data' | 'meta'> {
  const meta = members.get('meta')
  return {
    kind: 'message',
    type: null,
    format,
    data: members.get('blob')!,
    meta: meta === undefined || meta === 'null' ? '{}' : meta,
  }
}

/**
 * What is stored for the entries of a batch, in order. `text` is the body, `all_bytes` its length as PostgreSQL will
 * write it.
 * @throws AnnalsError invalid_request, payload_too_large; each names the entry's index
 */
export function batchEntries(body: AppendEntriesBody, text: string, all_bytes: number): AppendedEntry[] {
  // It is unknown which entry's numbers grow; it is enough that all of them together are accounted for.
  const text_bytes = Buffer.byteLength(text)
  const isOneByteEach = text_bytes === text.length
  const spread = Math.ceil((all_bytes - text_bytes) / body.entries.length)
  const slices = elementSlices(text, memberSlice(text, 'entries')!.from)
  const seen = new Set<string>()
  return body.entries.map((entry, index) => {
    const given = entry.id?.toLowerCase()
    if (given !== undefined && seen.has(given)) {
      throw new AnnalsError(
        'invalid_request',
        `/entries/${index}/id is already the id of an earlier entry in the batch.`,
      )
    }
    if (given !== undefined) seen.add(given)
    const { from, to } = slices[index]!
    const members = memberTexts(text, from)
    const length = isOneByteEach ? to - from : Buffer.byteLength(text.slice(from, to))
    const bytes = length + spread
    if (entry.kind === 'event') return eventEntry(entry, members, bytes, given, `/entries/${index}`)
    const id = given ?? newId()
    checkObjectBytes(`/entries/${index}/meta`, entry.meta)
    const { format = 'openai', key = null } = entry
    const blob = parseJson(members.get('blob')!)
    const { role, tokens } = messageEntry(format, blob, id, `/entries/${index}/blob`)
    const id_given = given !== undefined
    return { ...messageMembers(format, members), key, id, id_given, bytes, role, tokens }
  })
}
