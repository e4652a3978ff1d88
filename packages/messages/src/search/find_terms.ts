import { inPlainText, isPlain, type PlacesOf, type Searched } from './plain_text.js'
import type { SearchTerm } from './search_query.js'
import { type Word, wordsOf } from './words.js'

/** Characters of a snippet. */
export const SNIPPET_LENGTH_MAX = 200
/** Words of an entry of usual length. */
const WORDS_USUAL = 100
/** How far from where a snippet would be cut a word may begin or end instead: many writings have no words. */
const WORD_NEARBY = 24
/** Places of a term that a snippet is chosen from: the first ones. A long text may have one at each of its letters. */
const PLACES_MAX = 1_000

/** A part of a text, with the places of what was looked for: [start, end), in UTF-16 code units of `text`. */
export interface Snippet {
  text: string
  hits: Array<[start: number, end: number]>
}

/** A text that matches a query. */
export interface Match {
  snippet: Snippet
  /** How much of the text is about the query: greater is better. Comparable between texts for the same query. */
  score: number
}

/** Where a text has something that is looked for. */
export interface Hit {
  term: number
  start: number
  end: number
}

/** How a text matches a query, with the part that has the most of what is looked for; undefined if it does not. */
export function matchTerms(text: string, terms: readonly SearchTerm[]): Match | undefined {
  const { length, placesOf } = isPlain(text, terms) ? inPlainText(text) : inWords(wordsOf(text))
  const hits: Hit[] = []
  let score = 0
  for (const [index, term] of terms.entries()) {
    const { places, count } = placesOf(term, PLACES_MAX)
    if (count > 0 === term.is_excluded) return undefined
    for (const [start, end] of places) hits.push({ term: index, start, end })
    // As in BM25: each further occurrence counts for less, and in a long text all count for less.
    score += count / (count + 0.3 + (0.9 * length) / WORDS_USUAL)
  }
  hits.sort((a, b) => a.start - b.start || a.end - b.end)
  return { snippet: cutSnippet(text, hits), score }
}

/** Where a text has any of what is looked for, term by term. */
export function placesOfTerms(text: string, terms: readonly SearchTerm[]): [start: number, end: number][] {
  const { placesOf } = inWords(wordsOf(text))
  return terms.flatMap((term) => (term.is_excluded ? [] : placesOf(term, Number.POSITIVE_INFINITY).places))
}

const inWords = (words: readonly Word[]): Searched => ({
  length: words.length,
  placesOf: (term, most) => placesAmong(words, term, most),
})

/** Terms have few words, so looking for each place anew is still linear. */
function placesAmong(
  words: readonly Word[],
  { words: wanted, is_prefix }: SearchTerm,
  most: number,
): ReturnType<PlacesOf> {
  const places: [number, number][] = []
  let count = 0
  const last = wanted.length - 1
  for (let at = 0; at + last < words.length; at++) {
    let same = 0
    while (same < last && words[at + same]!.text === wanted[same]) same++
    const { text, end } = words[at + last]!
    if (same < last || !(is_prefix ? text.startsWith(wanted[last]!) : text === wanted[last])) continue
    count += 1
    if (count <= most) places.push([words[at]!.start, end])
  }
  return { places, count }
}

/** The stretch that has the most different terms, and of such the most hits; the first one of the best. */
export function cutSnippet(text: string, hits: readonly Hit[]): Snippet {
  const counts = new Map<number, number>()
  let best = { from: 0, to: 0, terms: 0 }
  let from = 0
  for (const [to, hit] of hits.entries()) {
    counts.set(hit.term, (counts.get(hit.term) ?? 0) + 1)
    while (from < to && hit.end - hits[from]!.start > SNIPPET_LENGTH_MAX) {
      const { term } = hits[from++]!
      const count = counts.get(term)! - 1
      if (count === 0) counts.delete(term)
      else counts.set(term, count)
    }
    const isBetter =
      counts.size > best.terms || (counts.size === best.terms && to - from > best.to - best.from)
    if (isBetter) best = { from, to, terms: counts.size }
  }
  const first = hits[best.from]?.start ?? 0
  const last = Math.min(hits[best.to]?.end ?? 0, first + SNIPPET_LENGTH_MAX)
  const spare = SNIPPET_LENGTH_MAX - (last - first)
  const earliest = Math.max(0, Math.min(first - Math.floor(spare / 2), text.length - SNIPPET_LENGTH_MAX))
  const start = nextWord(text, betweenCharacters(text, earliest), first)
  const latest = Math.min(text.length, start + SNIPPET_LENGTH_MAX)
  const end = endOfWordBefore(text, betweenCharacters(text, latest), last)
  return { text: text.slice(start, end), hits: withinSnippet(hits, start, end) }
}

/** Hits that overlap, as pairs of characters do, become one. */
function withinSnippet(hits: readonly Hit[], start: number, end: number): [number, number][] {
  const shown: [number, number][] = []
  for (const hit of hits) {
    if (hit.start < start || hit.start >= end) continue
    const [from, to] = [hit.start - start, Math.min(hit.end, end) - start]
    const before = shown.at(-1)
    if (before && from <= before[1]) before[1] = Math.max(before[1], to)
    else shown.push([from, to])
  }
  return shown
}

/** Where a word begins, from a place within one on; that place where none does before `most`, or nearby. */
function nextWord(text: string, start: number, most: number): number {
  if (!isWithinWord(text, start)) return start
  for (let at = start + 1; at <= Math.min(most, start + WORD_NEARBY); at++)
    if (!isOfWord(text[at - 1]) && isOfWord(text[at])) return at
  return start
}

/** Where a word ends, up to a place within another one; that place if none ends after `least`, or nearby. */
function endOfWordBefore(text: string, end: number, least: number): number {
  if (!isWithinWord(text, end)) return end
  for (let at = end - 1; at >= Math.max(least, end - WORD_NEARBY); at--)
    if (isOfWord(text[at - 1]) && !isOfWord(text[at])) return at
  return end
}

function isWithinWord(text: string, at: number): boolean {
  return isOfWord(text[at - 1]) && isOfWord(text[at])
}

/** Half a character beyond the 65,536 most usual ones counts as part of a word: nothing is cut before it. */
function isOfWord(unit: string | undefined): boolean {
  return unit !== undefined && /[\p{L}\p{N}\p{M}\p{Cs}]/u.test(unit)
}

function betweenCharacters(text: string, at: number): number {
  const isLow = (code: number) => code >= 0xdc00 && code <= 0xdfff
  return isLow(text.charCodeAt(at)) ? at - 1 : at
}
