import { hash } from 'node:crypto'
import { isRefusal, readStorable, writeJson } from '@annals/messages/json'
import { type Attributes, type Naming, openAiMessage, type Said, textIn } from '@annals/otel'
import type { AppendedEntry } from '../log/append/append_request.js'
import { messageEntry } from '../log/append_bodies.js'

export const MESSAGE_TYPE = 'otel.message'
/** Says that the next messages do not continue the ones before. */
export const CHANGED_TYPE = 'annals.context_changed'

/** Bytes of an entry without its data. */
const ENVELOPE_BYTES = 100

const VARIANTS = ['8', '9', 'a', 'b']

/** A UUIDv5: the same for the same name below the same UUID, wherever and whenever it is made. */
function namedId(namespace: string, name: string): string {
  const named = Buffer.concat([Buffer.from(namespace.replaceAll('-', ''), 'hex'), Buffer.from(name)])
  const text = hash('sha1', named)
  const variant = VARIANTS[Number.parseInt(text[16]!, 16) & 3]
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-5${text.slice(13, 16)}-${variant}${text.slice(17, 20)}-${text.slice(20, 32)}`
}

/** Names and digests for what is sorted out, which knows no cryptography. */
export const NAMING: Naming = {
  idOf: namedId,
  digestOf: (text) => hash('sha256', text),
}

/** An event to be stored, or why it cannot be. */
export function eventEntry(
  id: string,
  type: string,
  data: Attributes,
  occurred_at: string | null,
  bytes_max: number,
): AppendedEntry | string {
  const text = ownText(writeJson(data))
  const json = readStorable(text)
  if (isRefusal(json)) return 'it cannot be stored as JSON'
  const bytes = Buffer.byteLength(text) + json.expansion + ENVELOPE_BYTES
  if (bytes > bytes_max) return `it has ${bytes} bytes; at most ${bytes_max} can be stored of one`
  return {
    id,
    // Two requests that send the same at once must not be stored by one flush.
    id_given: true,
    kind: 'event',
    type,
    format: null,
    role: null,
    key: null,
    bytes,
    tokens: 0,
    occurred_at,
    data: text,
    meta: null,
    references: undefined,
  }
}

/** A message to be stored. One that is too long, or is none, is stored as an event, or as a note of its length. */
export function saidEntry(
  id: string,
  said: Said,
  occurred_at: string | null,
  bytes_max: number,
): AppendedEntry {
  const text = ownText(writeJson(openAiMessage(said)))
  const json = readStorable(text)
  const bytes = Buffer.byteLength(text) + (isRefusal(json) ? 0 : json.expansion) + ENVELOPE_BYTES
  if (bytes > bytes_max || isRefusal(json)) {
    const note = `[left out: ${Buffer.byteLength(textIn(said.text))} bytes of text, ${bytes} in all]`
    return saidEntry(id, { ...said, text: note, other: [], reasoning: '', calls: [] }, occurred_at, bytes_max)
  }
  try {
    const { role, tokens } = messageEntry('openai', text, json.value, id, '/message')
    return {
      id,
      id_given: true,
      kind: 'message',
      type: null,
      format: 'openai',
      role,
      key: null,
      bytes,
      tokens,
      occurred_at,
      data: text,
      meta: '{}',
      references: undefined,
    }
  } catch {
    return eventEntry(id, MESSAGE_TYPE, { ...said }, occurred_at, bytes_max) as AppendedEntry
  }
}

/** A reference to a blob is ours to make: what a program reports never is one. */
function ownText(text: string): string {
  return text.includes('"annals_blob"') ? text.replaceAll('"annals_blob"', '"annals.blob"') : text
}
