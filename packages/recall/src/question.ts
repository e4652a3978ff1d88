import { chunksOf, InvalidQuery, QUERY_WORDS_MAX, type SearchTerm, termOf } from '@annals/messages/search'
import { type AskedDate, readDates } from './dates.js'
import { isStopWord, languageOfWords, stemsOfAsked } from './languages.js'
import { partsIn, STEM_SIGN } from './line.js'

/** A word of a question: an entry may have it as it stands, or another form of it. */
export interface AskedWord {
  word: string
  is_prefix: boolean
  /** Stems of it, as words, besides itself. */
  stems: string[]
}

/** What a question asks for: entries that have many of its words, all that it has in quotes, and nothing excluded. */
export interface Question {
  words: AskedWord[]
  /** What was in quotes. */
  required: SearchTerm[]
  excluded: SearchTerm[]
  /** When it happened. */
  dates: AskedDate[]
}

/** After a sign that excludes words: a flag such as `--all` or `-f`, or a number below zero, of which questions speak. */
const FLAG = /^(?:-|\d|[A-Za-z]{1,2}(?![\p{L}\p{N}*]))/u

/**
 * Reads a question in plain words. Stop words are left out if others remain. `"quotes"` and `-without` mean what they mean
 * in a search by words, but flags and negative numbers are words; AND means nothing. `now`, in ms: what `yesterday` is told by.
 * @throws InvalidQuery
 */
export function readQuestion(query: string, now: number = Date.now()): Question {
  const asked: Omit<AskedWord, 'stems'>[] = []
  const required: SearchTerm[] = []
  const excluded: SearchTerm[] = []
  for (const { text, is_quoted, is_excluded: has_sign } of chunksOf(query)) {
    const is_excluded = has_sign && (is_quoted || !FLAG.test(text))
    const term = termOf(text, is_quoted, is_excluded)
    if (!term) continue
    if (is_excluded) excluded.push(term)
    else if (is_quoted) required.push(term)
    if (is_excluded) continue
    const last = term.words.length - 1
    for (const [index, word] of term.words.entries())
      asked.push({ word, is_prefix: term.is_prefix && index === last })
    // A name may be written in another way elsewhere: getUser, get_user.
    if (!is_quoted) for (const word of partsIn(text)) asked.push({ word, is_prefix: false })
  }
  const words = tellingWords(asked)
  if (words.length === 0)
    throw new InvalidQuery(
      excluded.length === 0
        ? 'must have at least one word'
        : 'must have at least one word to look for, beside those to be without',
    )
  const count = words.length + [...required, ...excluded].reduce((sum, term) => sum + term.words.length, 0)
  if (count > 2 * QUERY_WORDS_MAX || words.length > QUERY_WORDS_MAX)
    throw new InvalidQuery(`has more than ${QUERY_WORDS_MAX} words that say what is asked for`)
  return { words, required, excluded, dates: readDates(query, now) }
}

/** Each word once, with its stems; without stop words, if others remain. */
export function tellingWords(asked: readonly Omit<AskedWord, 'stems'>[]): AskedWord[] {
  const language = languageOfWords(asked.map(({ word }) => word))
  const telling = asked.filter(({ word, is_prefix }) => is_prefix || !isStopWord(word, language))
  const words = new Map<string, AskedWord>()
  for (const one of telling.length > 0 ? telling : asked) {
    const stems = one.is_prefix ? [] : stemsOfAsked(one.word, language)
    words.set(`${one.word}${one.is_prefix ? '*' : ''}`, { ...one, stems })
  }
  return [...words.values()]
}

/** How a word may stand in the line of an entry: as itself, or as one of its stems. */
export function formsOf({ word, stems }: AskedWord): { form: string; is_exact: boolean }[] {
  return [
    { form: word, is_exact: true },
    ...stems.flatMap((stem) => [
      ...(stem === word ? [] : [{ form: stem, is_exact: false }]),
      { form: STEM_SIGN + stem, is_exact: false },
    ]),
  ]
}
