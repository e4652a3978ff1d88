import { isUtf8 } from 'node:buffer'
import { type JsonRefusal, type JsonText, readStorable } from '@annals/messages/json'

/** Reads JSON to be stored as jsonb, or returns why it cannot be stored. */
export function readJson(source: Buffer | string): JsonText | JsonRefusal {
  if (typeof source === 'string') return readStorable(source)
  if (!isUtf8(source)) return { refused: 'not_json', reason: 'it is not valid UTF-8' }
  return readStorable(source.toString('utf8'))
}

/** Characters that are written together: one item after the other costs more than reading them. */
const TEXT_LENGTH = 64 * 1024

/** A list as JSON, in texts of about that length: what stands ahead of its items, these, in pieces, and what stands behind. */
export async function* jsonList(
  begin: string,
  pieces: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  end: string,
): AsyncGenerator<string> {
  let text = begin
  let separator = ''
  for await (const items of pieces)
    for (const item of items) {
      text += separator + item
      separator = ','
      if (text.length < TEXT_LENGTH) continue
      yield text
      text = ''
    }
  yield text + end
}
