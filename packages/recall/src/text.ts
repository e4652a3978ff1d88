import { cutSnippet, matchTerms, type Snippet, wordsOf } from '@annals/messages/search'
import { type Language, languageOfWords, stemOf } from './languages.js'
import type { AskedWord, Question } from './question.js'

/** Places of a word that a snippet is chosen from: the first ones. */
const PLACES_MAX = 200
const NONE: readonly number[] = []

/** What the text of an entry has of a question. */
export interface TextOfEntry {
  snippet: Snippet
  /** How near the words of the question stand to each other, in their order: 1 if each follows the one before it. */
  nearness: number
  /** Whether all of them, two or more, follow each other as they were asked for. */
  is_phrase: boolean
}

/**
 * Tells what texts have of a question; undefined of those that have not all that is in quotes, or something that is excluded.
 */
export function textReader({ words: asked, required, excluded }: Question) {
  const terms = [...required, ...excluded]
  const phrase = asked.map(({ word }) => word)
  // Texts of one project repeat their words.
  const formsOf = new Map<Language, (word: string) => readonly number[]>()
  return (text: string): TextOfEntry | undefined => {
    if (terms.length > 0 && !matchTerms(text, terms)) return undefined
    const words = wordsOf(text)
    const texts = words.map(({ text }) => text)
    const language = languageOfWords(texts)
    const askedIn = formsOf.get(language) ?? formsIn(asked, language)
    formsOf.set(language, askedIn)
    const hits: { term: number; start: number; end: number }[] = []
    const places = asked.map((): number[] => [])
    for (let at = 0; at < words.length; at++) {
      for (const term of askedIn(texts[at]!)) {
        if (places[term]!.length >= PLACES_MAX) continue
        places[term]!.push(at)
        hits.push({ term, start: words[at]!.start, end: words[at]!.end })
      }
    }
    return {
      snippet: cutSnippet(text, hits),
      nearness: nearnessOf(places),
      is_phrase: hasPhrase(texts, phrase),
    }
  }
}

/** Which words of a question a word of a text is a form of: looked up once for each word, as texts repeat them. */
function formsIn(asked: readonly AskedWord[], language: Language): (word: string) => readonly number[] {
  const forms = new Map<string, number[]>()
  const prefixes: [prefix: string, index: number][] = []
  for (const [index, { word, stems, is_prefix }] of asked.entries()) {
    if (is_prefix) prefixes.push([word, index])
    for (const form of new Set([word, ...stems])) forms.set(form, [...(forms.get(form) ?? []), index])
  }
  const known = new Map<string, readonly number[]>()
  return (word) => {
    let found = known.get(word)
    if (found === undefined) {
      const [exact, stemmed] = [forms.get(word) ?? NONE, forms.get(stemOf(word, language)) ?? NONE]
      const begun = prefixes.flatMap(([prefix, index]) => (word.startsWith(prefix) ? [index] : []))
      const count = exact.length + stemmed.length + begun.length
      found = count === 0 ? NONE : [...new Set([...exact, ...stemmed, ...begun])]
      known.set(word, found)
    }
    return found
  }
}

/** A question has few words, so each place of the first one costs little. */
function hasPhrase(words: readonly string[], phrase: readonly string[]): boolean {
  if (phrase.length < 2) return false
  for (let at = words.indexOf(phrase[0]!); at >= 0; at = words.indexOf(phrase[0]!, at + 1))
    if (phrase.every((word, index) => words[at + index] === word)) return true
  return false
}

/** `places`: by word of the question, where it stands, ascending. */
function nearnessOf(places: readonly (readonly number[])[]): number {
  let sum = 0
  for (let index = 1; index < places.length; index++) {
    const gap = leastGap(places[index - 1]!, places[index]!)
    if (gap !== undefined) sum += 1 / gap
  }
  return places.length > 1 ? sum / (places.length - 1) : 0
}

/** From a place of one to the next place of the other, at least. */
function leastGap(before: readonly number[], after: readonly number[]): number | undefined {
  let least: number | undefined
  let from = 0
  for (const at of after) {
    while (from < before.length && before[from]! < at) from++
    const last = before[from - 1]
    if (last !== undefined && (least === undefined || at - last < least)) least = at - last
  }
  return least
}
