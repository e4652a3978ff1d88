import { createRequire } from 'node:module'
import { countedText } from './message_format.js'
import type { Part } from './parts.js'

type Encoding = { countTokens(text: string): number }

// The encoding's tables take some 50 MB: a service that only keeps events never loads them.
let encoding: Encoding | undefined
const require = createRequire(import.meta.url)

/**
 * Tokens of a message's text, tool calls and tool results in o200k_base. Texts that look like the encoding's
 * special tokens count as the text that they are.
 */
export function countTokens(parts: Part[]): number {
  const text = countedText(parts)
  if (text === '') return 0
  encoding ??= require('gpt-tokenizer/encoding/o200k_base') as Encoding
  return encoding.countTokens(text)
}
