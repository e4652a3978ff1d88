import {
  blobReferences,
  countedContent,
  type FactsOf,
  InvalidMessage,
  type MessageFormat,
  mayReferToBlobs,
  type Part,
  parseStored,
  readMessage,
  showReferences,
} from '@annals/messages'
import { exactly, parseJson, writeJson } from '@annals/messages/json'
import { invalidRequest } from '../../errors.js'
import type { BlobPlace } from './append_request.js'
import { referencesIn } from './blob_places.js'
import { countTokens } from './count_tokens.js'

/** What is stored and answered with a message, in addition to its blob. */
export interface MessageEntry {
  role: 'user' | 'assistant'
  parts: Part[]
  tokens: number
  references: BlobPlace[] | undefined
}

/**
 * Checks a message, as JSON text and as `JSON.parse` reads it, against its provider's format and derives what is stored
 * with it. `id` is the message's; `pointer` is the blob's place in the request. Where it refers to blobs, the parts have
 * marks of them.
 * @throws AnnalsError invalid_request, naming the field
 */
export function messageEntry(
  format: MessageFormat,
  text: string,
  parsed: unknown,
  id: string,
  pointer: string,
  factsOf?: FactsOf,
): MessageEntry {
  try {
    const references = mayReferToBlobs(text) ? referencesIn(parsed, pointer) : undefined
    const blob = references ? parseStored(format, text) : exactly(parsed, text)
    const message = readMessage(format, blob, { id })
    const { role, parts } = message
    return { role, parts, tokens: countTokens(countedContent(format, message, blob, factsOf)), references }
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    throw invalidRequest(
      `${pointer}${error.pointer} is invalid in a message of ${format} format: it ${error.reason}.`,
    )
  }
}

/** The tokens of a stored message. One that is no message of its format any more has none. */
export function storedTokens(format: MessageFormat, text: string, factsOf: FactsOf): number {
  const blob = parseStored(format, text)
  try {
    return countTokens(countedContent(format, readMessage(format, blob), blob, factsOf))
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    return 0
  }
}

/** The parts of a message, whose blob is `text`, as JSON: with references to blobs in place of the marks. */
export function partsJson(parts: Part[], text: string, mayRefer = mayReferToBlobs(text)): string {
  if (!mayRefer) return writeJson(parts)
  const references = blobReferences(parseJson(text)).map(({ reference }) => reference)
  return writeJson(showReferences(parts, references))
}

/** The same for a stored message. */
export function storedPartsJson(format: MessageFormat, text: string, id: string): string {
  return partsJson(readMessage(format, parseStored(format, text), { id }).parts, text)
}
