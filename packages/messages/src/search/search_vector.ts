import type { SearchTerm } from './search_query.js'
import { wordsOf } from './words.js'

/**
 * The words of a text as PostgreSQL's tsvector. Of a word that occurs often, the weight says how often: C twice or three
 * times, B up to seven times, A more. Places are not kept: they would take as much room as the text.
 */
export function searchVector(text: string): string {
  const counts = new Map<string, number>()
  for (const { text: word } of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1)
  const lexemes: string[] = []
  for (const [word, count] of counts) lexemes.push(`'${word}'${weightOf(count)}`)
  return lexemes.join(' ')
}

function weightOf(count: number): string {
  if (count < 2) return ''
  return count < 4 ? ':1C' : count < 8 ? ':1B' : ':1A'
}

/**
 * A query as PostgreSQL's tsquery: what matches the query, and more where words must stand behind each other, which has
 * to be looked at (`isExact`).
 */
export function searchCondition(terms: readonly SearchTerm[]): string {
  return terms
    .filter(({ words, is_excluded }) => !is_excluded || words.length === 1)
    .flatMap(({ words, is_prefix, is_excluded }) =>
      words.map((word, index) => {
        const isOpen = is_prefix && index === words.length - 1
        return `${is_excluded ? '!' : ''}'${word}'${isOpen ? ':*' : ''}`
      }),
    )
    .join(' & ')
}

/** Whether what `searchCondition` finds needs no further look. */
export function isExact(terms: readonly SearchTerm[]): boolean {
  return terms.every(({ words }) => words.length === 1)
}
