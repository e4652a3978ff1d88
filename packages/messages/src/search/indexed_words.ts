import type { SearchTerm } from './search_query.js'
import { wordsOf } from './words.js'

/** Characters of a label that count: it narrows a search, which looks at the entry itself. */
const LABEL_LENGTH_MAX = 64

/** The words of a text, each once, behind a space each: PostgreSQL reads it as a tsvector. */
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

/** Conditions on words, as PostgreSQL's tsquery; and the longest word of those that must be there, or begin a word. */
export interface SearchCondition {
  /** What some entries together must have: as `each`, without what must not be there. */
  together: string
  /** What each entry must have: where words must stand behind each other, more than the query finds (`isExact`). */
  each: string
  longest: string
}

/** `labels`: those that entries must have as well. */
export function searchCondition(terms: readonly SearchTerm[], labels: readonly string[]): SearchCondition {
  const required = terms.filter(({ is_excluded }) => !is_excluded)
  const excluded = terms.filter(({ words, is_excluded }) => is_excluded && words.length === 1)
  const together = [...labels.map((label) => `'${label}'`), ...required.flatMap(wordsOfTerm)]
  const each = [...together, ...excluded.flatMap(wordsOfTerm).map((word) => `!${word}`)]
  const longest = required.flatMap(({ words }) => words).reduce((a, b) => (b.length > a.length ? b : a), '')
  return { together: together.join(' & '), each: each.join(' & '), longest }
}

function wordsOfTerm({ words, is_prefix }: SearchTerm): string[] {
  return words.map((word, index) => `'${word}'${is_prefix && index === words.length - 1 ? ':*' : ''}`)
}

/** Whether what `searchCondition` finds needs no further look. */
export function isExact(terms: readonly SearchTerm[]): boolean {
  return terms.every(({ words }) => words.length === 1)
}
