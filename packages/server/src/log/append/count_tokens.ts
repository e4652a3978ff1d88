import { createRequire } from 'node:module'
import { countedText, type Part } from '@annals/messages'

type Encoding = {
  clearMergeCache(): void
  countTokens(text: string, options: { allowedSpecial: Set<string>; disallowedSpecial: Set<string> }): number
}

// The encoding's tables take some 50 MB: a service that only stores events never loads them.
let encoding: Encoding | undefined
const require = createRequire(import.meta.url)

// Text that looks like one of the encoding's special tokens counts as plain text.
const NO_SPECIAL = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

// Merging takes quadratic time on a run without a break: 5 s for 100,000 letters. No real word is that long.
const UNBROKEN = /\S{128}|\s{128}/g

/**
 * Characters after which the encoding's cache is reset. It keeps 100,000 merges, and evicting one for another takes a
 * hundred times as long: one caller's nonsense would slow down everybody's messages.
 */
const MEMORY_LENGTH_MAX = 200_000
let remembered_length = 0

/**
 * Tokens of a message's text, tool calls and tool results in o200k_base. Runs of more than 128 characters without a
 * break are counted in pieces, so their count may be a few tokens too high.
 */
export function countTokens(parts: Part[]): number {
  const text = countedText(parts)
  if (text === '') return 0
  encoding ??= require('gpt-tokenizer/encoding/o200k_base') as Encoding
  remembered_length += text.length
  if (remembered_length > MEMORY_LENGTH_MAX) {
    encoding.clearMergeCache()
    remembered_length = text.length
  }
  let tokens = 0
  let from = 0
  for (const { index } of text.matchAll(UNBROKEN)) {
    const to = index + 128
    tokens += encoding.countTokens(text.slice(from, to), NO_SPECIAL)
    from = to
  }
  return tokens + encoding.countTokens(text.slice(from), NO_SPECIAL)
}
