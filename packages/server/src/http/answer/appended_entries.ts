import { elementSlices, memberObjects, memberSlice, type Slice } from '@annals/messages/json'
import { invalidRequest } from '../../errors.js'
import { newId } from '../../ids.js'
import { BATCH_ENTRIES_MAX } from '../../limits.js'
import { type AppendedEntry, RETRACTION_TYPE, type SessionAppend } from '../../log/append/append_request.js'
import { referencesIn } from '../../log/append/blob_places.js'
import { type MessageEntry, messageEntry } from '../../log/append/message_entry.js'
import type { AppendEntriesBody, AppendToSessionsBody } from '../../log/entry_schema.js'
import type { AddEventBody } from '../../log/event_schema.js'
import { checkObjectBytes } from '../request/json_parameters.js'

/** What is stored for an event. `bytes`: of its JSON, as it will be written. */
export function eventEntry(
  { type, key, data }: Pick<AddEventBody, 'type' | 'key' | 'data'>,
  members: Map<string, string>,
  bytes: number,
  given?: string,
  place = '',
): AppendedEntry {
  if (type === RETRACTION_TYPE)
    throw invalidRequest(
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
    references: referencesIn(members.get('data')!, () => data, `${place}/data`),
  }
}

/**
 * What is stored for a message. A meta of null counts as absent. Every member is named, in the order of an event's:
 * spreading objects together costs several microseconds, and entries of two shapes slow down whatever handles both.
 */
export function messageToStore(
  { role, tokens, references }: Pick<MessageEntry, 'role' | 'tokens' | 'references'>,
  members: Map<string, string>,
  { id, id_given, format, key, bytes }: Pick<AppendedEntry, 'id' | 'id_given' | 'format' | 'key' | 'bytes'>,
): AppendedEntry {
  const meta = members.get('meta')
  return {
    id,
    id_given,
    kind: 'message',
    type: null,
    format,
    role,
    key,
    bytes,
    tokens,
    data: members.get('blob')!,
    meta: meta === undefined || meta === 'null' ? '{}' : meta,
    references,
  }
}

/**
 * What is stored for the entries of a batch, in order. `text` is the body, `all_bytes` its length as PostgreSQL will
 * write it.
 * @throws AnnalsError invalid_request, payload_too_large; each names the entry's index
 */
export function batchEntries(body: AppendEntriesBody, text: string, all_bytes: number): AppendedEntry[] {
  return entriesAt(body.entries, text, 0, '', bytesOf(text, all_bytes, body.entries.length))
}

/**
 * The same for several sessions.
 * @throws AnnalsError invalid_request, payload_too_large; each names the index of the session, and of the entry
 */
export function atomicAppends(body: AppendToSessionsBody, text: string, all_bytes: number): SessionAppend[] {
  const entries_all = body.appends.reduce((sum, { entries }) => sum + entries.length, 0)
  if (entries_all > BATCH_ENTRIES_MAX)
    throw invalidRequest(
      `/appends must have at most ${BATCH_ENTRIES_MAX} entries together; there are ${entries_all}.`,
    )
  const lengthOf = bytesOf(text, all_bytes, entries_all)
  const slices = elementSlices(text, memberSlice(text, 'appends')!.from)
  const seen = new Set<string>()
  return body.appends.map((append, index) => {
    const { entries, if_match, configs_patch } = append
    const place = `/appends/${index}`
    const session_id = append.session_id.toLowerCase()
    if (seen.has(session_id))
      throw invalidRequest(`${place}/session_id is already that of an earlier element.`)
    seen.add(session_id)
    checkObjectBytes(`${place}/configs_patch`, configs_patch)
    const { from } = slices[index]!
    const patch = configs_patch && memberSlice(text, 'configs_patch', from)
    return {
      session_id,
      entries: entriesAt(entries, text, from, place, lengthOf),
      if_match,
      configs_patch: patch && text.slice(patch.from, patch.to),
    }
  })
}

type LengthOf = (slice: Slice) => number

/** The length of each of so many entries in a text, as PostgreSQL will write it. */
function bytesOf(text: string, all_bytes: number, entries: number): LengthOf {
  // It is unknown which entry's numbers grow; it is enough that all of them together are accounted for.
  const text_bytes = Buffer.byteLength(text)
  const isOneByteEach = text_bytes === text.length
  const spread = Math.ceil((all_bytes - text_bytes) / entries)
  return ({ from, to }) => (isOneByteEach ? to - from : Buffer.byteLength(text.slice(from, to))) + spread
}

/** The entries of the object that begins at `from`; `outer` is its place in the body. */
function entriesAt(
  entries: AppendEntriesBody['entries'],
  text: string,
  from: number,
  outer: string,
  lengthOf: LengthOf,
): AppendedEntry[] {
  const objects = memberObjects(text, 'entries', from)
  const seen = new Set<string>()
  return entries.map((entry, index) => {
    const place = `${outer}/entries/${index}`
    const given = entry.id?.toLowerCase()
    if (given !== undefined && seen.has(given)) {
      throw invalidRequest(`${place}/id is already the id of an earlier entry in the batch.`)
    }
    if (given !== undefined) seen.add(given)
    const object = objects[index]!
    const { members } = object
    const bytes = lengthOf(object)
    if (entry.kind === 'event') return eventEntry(entry, members, bytes, given, place)
    const id = given ?? newId()
    checkObjectBytes(`${place}/meta`, entry.meta)
    const { format = 'openai', key = null } = entry
    const message = messageEntry(format, members.get('blob')!, entry.blob, id, `${place}/blob`)
    return messageToStore(message, members, { id, id_given: given !== undefined, format, key, bytes })
  })
}
