import { type Word, wordsOf } from '@annals/messages/search'
import { languageOfWords, stemOf } from './languages.js'

/**
 * How often a word stands in a text, in steps: in the line of an entry, the words that stand in it once come first, and
 * after the sign of a step those that stand in it as often.
 */
export const STEPS = [2, 3, 4, 8] as const
/** Before a stem that is not a word of the text itself, and before a part of a word such as `getUser`. */
export const STEM_SIGN = '~'
export const STEP_SIGN = '#'

const PART = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g
const HAS_PARTS = /[a-z][A-Z]/

/**
 * The words of a text, each once, with the stems of those that have another one, after a space each: PostgreSQL reads it
 * as a tsvector. No word has a sign, so whoever looks for whole words finds what is there without the stems.
 */
export function lineOf(text: string): string {
  const words = wordsOf(text)
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word.text, (counts.get(word.text) ?? 0) + 1)
  const language = languageOfWords(counts.keys())
  const stems = new Map<string, number>()
  const addStem = (word: string, count: number, isPart = false) => {
    const stem = stemOf(word, language)
    if (isPart || stem !== word) stems.set(STEM_SIGN + stem, (stems.get(STEM_SIGN + stem) ?? 0) + count)
  }
  for (const [word, count] of counts) addStem(word, count)
  for (const word of words) for (const part of partsOf(text, word)) addStem(part, 1, true)
  const groups = new Map<number, string[]>([[1, []], ...STEPS.map((step): [number, string[]] => [step, []])])
  for (const [token, count] of [...counts, ...stems]) groups.get(stepOf(count))!.push(token)
  return [...groups]
    .filter(([, tokens]) => tokens.length > 0)
    .map(([step, tokens]) => (step === 1 ? '' : `${STEP_SIGN}${step} `) + tokens.join(' '))
    .join(' ')
}

function stepOf(count: number): number {
  return STEPS.findLast((step) => count >= step) ?? 1
}

/** The words of the names in a text that programs write as one. */
export function partsIn(text: string): string[] {
  return HAS_PARTS.test(text) ? wordsOf(text).flatMap((word) => partsOf(text, word)) : []
}

function partsOf(text: string, { start, end }: Word): string[] {
  const written = text.slice(start, end)
  if (!HAS_PARTS.test(written)) return []
  return (written.slice(0, 64).match(PART) ?? []).map((part) => part.toLowerCase())
}
