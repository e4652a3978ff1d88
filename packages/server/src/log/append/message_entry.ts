import { InvalidMessage, type MessageFormat, type Part, readMessage } from '@annals/messages'
import { AnnalsError } from '../../errors.js'
import { countTokens } from './count_tokens.js'

/** What is stored and answered with a message, in addition to its blob. */
export interface MessageEntry {
  role: 'user' | 'assistant'
  parts: Part[]
  tokens: number
}

/**
 * Checks a message against its provider's format and derives what is stored with it. `id` is the message's; `pointer`
 * is the blob's place in the request.
 * @throws AnnalsError invalid_request, naming the field
 */
export function messageEntry(
  format: MessageFormat,
  blob: unknown,
  id: string,
  pointer: string,
): MessageEntry {
  try {
    const { role, parts } = readMessage(format, blob, { id })
    return { role, parts, tokens: countTokens(parts) }
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    throw new AnnalsError(
      'invalid_request',
      `${pointer}${error.pointer} is invalid in a message of ${format} format: ${error.reason}.`,
    )
  }
}
