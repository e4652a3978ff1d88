import { isObject, type Json, parsedText } from '../json/exact_json.ts'

/** One thing that a message says, whichever provider's format it was written in. */
export type MessagePart =
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'image'; source: string }
  | { type: 'file'; name: string; value: Json }
  | { type: 'call'; id: string | undefined; name: string; input: Json }
  | { type: 'result'; id: string | undefined; name: string | undefined; output: Json; is_error: boolean }
  | { type: 'other'; value: Json }

/** A message as people read it. `speaker` is the provider's own word for who spoke. */
export interface ReadMessage {
  speaker: string
  parts: MessagePart[]
}

export type JsonMember = { [key: string]: Json }

export const text = (value: Json | undefined): MessagePart[] =>
  typeof value === 'string' && value !== '' ? [{ type: 'text', text: value }] : []

export const stringOf = (value: Json | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

export const objectsIn = (value: Json | undefined): JsonMember[] =>
  Array.isArray(value) ? value.filter(isObject) : []

/** What a text holds: the JSON in it, or the text itself. */
export const valueIn = (value: Json | undefined): Json =>
  typeof value === 'string' ? (parsedText(value) ?? value) : (value ?? null)

/** An image's bytes as an address that the page may show. */
export function dataAddress(media_type: Json | undefined, data: Json | undefined): string | undefined {
  const type = stringOf(media_type) ?? 'image/png'
  return typeof data === 'string' && /^image\/(?:png|jpeg|gif|webp|avif)$/.test(type)
    ? `data:${type};base64,${data}`
    : undefined
}

/** Content that is a list of typed blocks whose only text counts. */
export function textOfBlocks(value: Json | undefined): Json {
  if (!Array.isArray(value)) return valueIn(value)
  const texts = objectsIn(value).map(({ text }) => text)
  return texts.length > 0 && texts.every((one) => typeof one === 'string') ? valueIn(texts.join('\n')) : value
}

const ERROR_TEXT = /^\s*(?:error|traceback|exception)\b/i

/** Whether a result reads like a failure, where its format has no mark for that. */
export function readsLikeError(output: Json): boolean {
  if (typeof output === 'string') return ERROR_TEXT.test(output)
  return (
    isObject(output) &&
    'error' in output &&
    output.error !== null &&
    output.error !== false &&
    output.error !== ''
  )
}
