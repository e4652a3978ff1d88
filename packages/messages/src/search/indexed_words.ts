import type { SearchTerm } from './search_query.js'
import { wordsOf } from './words.js'

/** Characters of a label that count: it narrows a search, which looks at the entry itself. */
const LABEL_LENGTH_MAX = 64

/** The words of a text, each once, after a space each: PostgreSQL reads it as a tsvector. */
export function indexedWords(text: string): string {
  const words = new Set<string>()
  for (const word of wordsOf(text)) words.add(word.text)
  return [...words].join(' ')
}

/** What stands among the words of an entry for its type or, without one, for the role of a message. No word is like it. */
export function indexedLabel(type: string | null, role: string | null): string {
  const [sign, name] = type === null ? ['@', role ?? ''] : ['=', type]
  return sign + name.slice(0, LABEL_LENGTH_MAX).replaceAll(/\W/g, '_')
}

/** Conditions on words: where words must stand after each other, more than the query finds (`isExact`). */
export interface SearchCondition {
  /** What some entries together must have, as PostgreSQL's tsquery: all but what must not be there. */
  together: string
  /** What the line of each entry, and a space after it, must be LIKE, and must not be. */
  alike: string[]
  unlike: string[]
  /** The longest word of those that must be there, or begin a word. */
  longest: string
}

/** `labels`: those that entries must have as well. */
export function searchCondition(terms: readonly SearchTerm[], labels: readonly string[]): SearchCondition {
  const required = terms.filter(({ is_excluded }) => !is_excluded).flatMap(wordsOfTerm)
  const excluded = terms.filter(({ words, is_excluded }) => is_excluded && words.length === 1)
  const together = [
    ...labels.map((label) => `'${label}'`),
    ...required.map(({ word, is_prefix }) => `'${word}'${is_prefix ? ':*' : ''}`),
  ]
  return {
    together: together.join(' & '),
    alike: [...labels.map((label) => `${label} %`), ...required.map(patternOf)],
    unlike: excluded.flatMap(wordsOfTerm).map(patternOf),
    longest: required.reduce((longest, { word }) => (word.length > longest.length ? word : longest), ''),
  }
}

interface WantedWord {
  word: string
  is_prefix: boolean
}

function wordsOfTerm({ words, is_prefix }: SearchTerm): WantedWord[] {
  return words.map((word, index) => ({ word, is_prefix: is_prefix && index === words.length - 1 }))
}

/** Words have no signs, so none of LIKE's. */
function patternOf({ word, is_prefix }: WantedWord): string {
  return `% ${word}${is_prefix ? '' : ' '}%`
}

/** Whether what `searchCondition` finds needs no further look. */
export function isExact(terms: readonly SearchTerm[]): boolean {
  return terms.every(({ words }) => words.length === 1)
}
