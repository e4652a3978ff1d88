import { parseJson } from '@annals/messages/json'

/** Characters of an error that are looked at: what went wrong stands at its beginning. */
const TEXT_MAX = 300
const MASK = '…'

/** Quoted strings. An apostrophe within a word opens none. */
const QUOTED = /"[^"]{0,200}"|`[^`]{0,200}`|(?<!\w)'[^']{0,200}'(?!\w)/g
const PREFIX = /^(?:[Ee]rror|ERROR|[Ff]ailed|[Ee]xception)\s*[:!-]\s*/

/**
 * What errors of one kind have in common: the text with quoted strings, and all words with digits, `@` or `/` in
 * them, masked. Empty if nothing is left that says what went wrong.
 */
export function errorTemplate(error: string): string {
  const line =
    messageOf(error)
      .split('\n')
      .find((text) => text.trim() !== '') ?? ''
  const head = line.slice(0, TEXT_MAX).trim().replace(PREFIX, '')
  const masked = head
    .replace(QUOTED, MASK)
    .split(/(\s+)/)
    .map((word) => (/[\d@/\\]/.test(word) ? maskWord(word) : word))
    .join('')
    .replace(/\s+/g, ' ')
    .trim()
  return /\p{L}{3}/u.test(masked) ? masked : ''
}

/** Keeps the punctuation around a word. */
function maskWord(word: string): string {
  const end = /[,;:.!?)\]}]{1,3}$/.exec(word.slice(-3))?.[0] ?? ''
  const start = /^[([{]/.test(word) ? word[0]! : ''
  return start + MASK + end
}

/** Results that are JSON name their error in a member. */
function messageOf(error: string): string {
  if (!error.trimStart().startsWith('{')) return error
  try {
    const value = parseJson(error) as Record<string, unknown>
    const named = [value.error, value.message, value.detail, value.reason].find((text) => text != null)
    if (typeof named === 'string') return named
    const inner = (named as Record<string, unknown> | undefined)?.message
    return typeof inner === 'string' ? inner : error
  } catch {
    return error
  }
}
