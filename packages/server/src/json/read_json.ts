import { isUtf8 } from 'node:buffer'
import { type JsonRefusal, type JsonText, readStorable } from '@annals/messages/json'

/** Reads JSON to be stored as jsonb, or returns why it cannot be stored. */
export function readJson(source: Buffer | string): JsonText | JsonRefusal {
  if (typeof source === 'string') return readStorable(source)
  if (!isUtf8(source)) return { refused: 'not_json', reason: 'it is not valid UTF-8' }
  return readStorable(source.toString('utf8'))
}
