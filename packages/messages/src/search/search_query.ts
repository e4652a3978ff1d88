import { wordsOf } from './words.js'

/** Words of a query that are looked for, those to be without included. */
export const QUERY_WORDS_MAX = 32

/** A word, or several directly after each other, that an entry must or must not have. */
export interface SearchTerm {
  words: string[]
  /** The last word may go on. */
  is_prefix: boolean
  is_excluded: boolean
}

/** A query that cannot be carried out; `message` says what is wrong with it, after the name of the parameter. */
export class InvalidQuery extends Error {
  override readonly name = 'InvalidQuery'
}

/**
 * Reads a query: `words`, `"several words in this order"`, `-without`, `begin*`. An entry matches if it has all that the
 * query names. AND between words may be written; it changes nothing. What is one word to a person and several to the
 * search, such as get_user or an e-mail address, is looked for as if it stood in quotes.
 * @throws InvalidQuery
 */
export function parseSearchQuery(query: string): SearchTerm[] {
  const terms: SearchTerm[] = []
  let words = 0
  for (const { text, is_quoted, is_excluded } of chunksOf(query)) {
    if (text === 'AND' && !is_quoted && !is_excluded) continue
    const term = termOf(text, is_quoted, is_excluded)
    if (!term) continue
    words += term.words.length
    if (words > QUERY_WORDS_MAX)
      throw new InvalidQuery(`has more than ${QUERY_WORDS_MAX} words; a longer one finds no more`)
    terms.push(term)
  }
  if (!terms.some(({ is_excluded }) => !is_excluded))
    throw new InvalidQuery(
      terms.length === 0
        ? 'must have at least one word'
        : 'must have at least one word to look for, beside those to be without',
    )
  return terms
}

/** A part of a query between spaces, or in quotes. */
export interface QueryChunk {
  text: string
  is_quoted: boolean
  is_excluded: boolean
}

/** The parts of a query, in order. */
export function* chunksOf(query: string): Generator<QueryChunk> {
  let at = 0
  while (at < query.length) {
    if (query[at]!.trim() === '') {
      at++
      continue
    }
    const is_excluded = query[at] === '-'
    if (is_excluded) at++
    const is_quoted = query[at] === '"'
    if (is_quoted) at++
    const start = at
    while (at < query.length && query[at] !== '"' && (is_quoted || query[at]!.trim() !== '')) at++
    yield { text: query.slice(start, at), is_quoted, is_excluded }
    if (is_quoted) at++
  }
}

/** The word or phrase that a part of a query looks for; undefined if it has none. */
export function termOf(text: string, is_quoted: boolean, is_excluded: boolean): SearchTerm | undefined {
  const words = wordsOf(text)
  const last = words.at(-1)
  if (!last) return undefined
  let is_prefix = text.endsWith('*') && !is_quoted
  if (last.is_tail) {
    // One character alone begins a pair, or is a tail; in the text, others may follow those of the query.
    if (words.at(-2)?.end === last.end) words.pop()
    else is_prefix = true
  }
  return { words: words.map((word) => word.text), is_prefix, is_excluded }
}
