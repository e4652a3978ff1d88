/** The class of a character for a tokenizer. */
const SPACE = 0
const LETTER = 1
const DIGIT = 2
const SIGN = 3
/** Letters of other alphabets than the Latin one. */
const FOREIGN_LETTER = 4
/** Chinese, Japanese, Korean: a character is a token or a little less. */
const IDEOGRAPH = 5
/** Emoji and what else stands beyond the letters. */
const SYMBOL = 6

/** Tokens of a run of so many characters of one kind, for each kind, as o200k_base counts on average. */
const TOKENS_OF_RUN: readonly ((length: number) => number)[] = [
  // A single space belongs to the word after it.
  (length) => (length === 1 ? 0 : 1 + length / 100),
  (length) => (length <= 7 ? 1 : length / 7),
  (length) => Math.ceil(length / 3),
  (length) => (length <= 2 ? 1 : length / 2),
  (length) => Math.max(1, length / 3.2),
  (length) => length * 0.65,
  (length) => length * 0.9,
]

/**
 * About how many tokens a text has, without a tokenizer's dictionary of megabytes: within a fifth of o200k_base for
 * prose, code and JSON in most languages. It takes one look at each character.
 */
export function estimateTokens(text: string): number {
  let tokens = 0
  let kind = -1
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const next = kindOf(text.charCodeAt(at))
    if (next !== kind) {
      if (kind >= 0) tokens += TOKENS_OF_RUN[kind]!(length)
      kind = next
      length = 0
    }
    length++
  }
  if (kind >= 0) tokens += TOKENS_OF_RUN[kind]!(length)
  return Math.round(tokens)
}

function kindOf(code: number): number {
  if (code < 0x80) {
    if (code <= 0x20) return SPACE
    if (code >= 0x30 && code <= 0x39) return DIGIT
    return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) ? LETTER : SIGN
  }
  // Latin letters with marks, as in café.
  if (code >= 0xc0 && code < 0x250) return LETTER
  if (code < 0x2000) return FOREIGN_LETTER
  if (code >= 0x2e80 && code < 0xd800) return IDEOGRAPH
  return SYMBOL
}
