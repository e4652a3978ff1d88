import { stemmer as danish } from '@orama/stemmers/danish'
import { stemmer as dutch } from '@orama/stemmers/dutch'
import { stemmer as english } from '@orama/stemmers/english'
import { stemmer as french } from '@orama/stemmers/french'
import { stemmer as german } from '@orama/stemmers/german'
import { stemmer as italian } from '@orama/stemmers/italian'
import { stemmer as norwegian } from '@orama/stemmers/norwegian'
import { stemmer as portuguese } from '@orama/stemmers/portuguese'
import { stemmer as russian } from '@orama/stemmers/russian'
import { stemmer as spanish } from '@orama/stemmers/spanish'
import { stemmer as swedish } from '@orama/stemmers/swedish'
import { stemmer as turkish } from '@orama/stemmers/turkish'
import { stopwords as danishStops } from '@orama/stopwords/danish'
import { stopwords as dutchStops } from '@orama/stopwords/dutch'
import { stopwords as englishStops } from '@orama/stopwords/english'
import { stopwords as frenchStops } from '@orama/stopwords/french'
import { stopwords as germanStops } from '@orama/stopwords/german'
import { stopwords as italianStops } from '@orama/stopwords/italian'
import { stopwords as norwegianStops } from '@orama/stopwords/norwegian'
import { stopwords as portugueseStops } from '@orama/stopwords/portuguese'
import { stopwords as russianStops } from '@orama/stopwords/russian'
import { stopwords as spanishStops } from '@orama/stopwords/spanish'
import { stopwords as swedishStops } from '@orama/stopwords/swedish'
import { stopwords as turkishStops } from '@orama/stopwords/turkish'

/** A language whose words have forms. */
export interface Language {
  stem: (word: string) => string
  /** Words that say little about what a text is about. Those with an apostrophe stand here in their parts. */
  stops: ReadonlySet<string>
}

/** What a question has and its answer has not, besides the usual stop words. */
const ASKING = ['many', 'much', 'get', 'got', 'tell', 'told', 'also', 'since', 'whether', 'us', 'recently']

/** Forms that no stemmer leads back to the word: its base form, and these. */
const IRREGULAR = new Map(
  [
    'become became',
    'begin began begun',
    'bite bit bitten',
    'break broke broken',
    'bring brought',
    'build built',
    'buy bought',
    'catch caught',
    'child children',
    'choose chose chosen',
    'come came',
    'draw drew drawn',
    'drink drank drunk',
    'drive drove driven',
    'eat ate eaten',
    'fall fell fallen',
    'feel felt',
    'fight fought',
    'find found',
    'fly flew flown',
    'foot feet',
    'forget forgot forgotten',
    'freeze froze frozen',
    'give gave given',
    'go went gone',
    'grow grew grown',
    'hang hung',
    'hear heard',
    'hide hid hidden',
    'hold held',
    'keep kept',
    'know knew known',
    'lead led',
    'leave left',
    'lend lent',
    'lose lost',
    'make made',
    'man men',
    'mean meant',
    'meet met',
    'mouse mice',
    'pay paid',
    'person people',
    'ride rode ridden',
    'ring rang rung',
    'rise rose risen',
    'run ran',
    'say said',
    'see saw seen',
    'seek sought',
    'sell sold',
    'send sent',
    'shake shook shaken',
    'shoot shot',
    'show shown',
    'sing sang sung',
    'sink sank sunk',
    'sit sat',
    'sleep slept',
    'speak spoke spoken',
    'spend spent',
    'stand stood',
    'steal stole stolen',
    'stick stuck',
    'strike struck',
    'swear swore sworn',
    'swim swam swum',
    'take took taken',
    'teach taught',
    'tear tore torn',
    'think thought',
    'throw threw thrown',
    'tooth teeth',
    'understand understood',
    'wake woke woken',
    'wear wore worn',
    'wife wives',
    'win won',
    'woman women',
    'write wrote written',
  ].flatMap((forms) => {
    const [base, ...others] = forms.split(' ') as [string, ...string[]]
    return others.map((form): [string, string] => [form, base])
  }),
)

const ENGLISH = languageOf((word) => english(IRREGULAR.get(word) ?? word), [...englishStops, ...ASKING])
const RUSSIAN = languageOf(russian, russianStops)
/** The first of those that a text has most stop words of. */
const LATIN = [
  ENGLISH,
  languageOf(german, germanStops),
  languageOf(french, frenchStops),
  languageOf(spanish, spanishStops),
  languageOf(italian, italianStops),
  languageOf(portuguese, portugueseStops),
  languageOf(dutch, dutchStops),
  languageOf(swedish, swedishStops),
  languageOf(danish, danishStops),
  languageOf(norwegian, norwegianStops),
  languageOf(turkish, turkishStops),
]

/** Words of a text that its language is told by. */
const TELLING_WORDS = 200
const CACHED_STEMS = 20_000
/** Letters of a word that has forms: what is longer is a code. */
const STEMMED = { least: 3, most: 32 }
const LATIN_WORD = /^\p{Script=Latin}+$/u
const CYRILLIC_WORD = /^\p{Script=Cyrillic}+$/u
const ASCII_WORD = /^[a-z]+$/
const MARKS = /\p{M}/gu
const NONE: readonly number[] = []

function languageOf(stem: (word: string) => string, stops: readonly string[]): Language {
  return { stem: cached(stem), stops: new Set(stops.flatMap((stop) => stop.toLowerCase().split(/['’]/))) }
}

/** Stemming takes some microseconds, and texts repeat their words. */
function cached(stem: (word: string) => string): (word: string) => string {
  const known = new Map<string, string>()
  return (word) => {
    let found = known.get(word)
    if (found === undefined) {
      if (known.size >= CACHED_STEMS) known.clear()
      found = stem(word).normalize('NFD').replaceAll(MARKS, '')
      known.set(word, found)
    }
    return found
  }
}

/** By stop word, which of them have it. */
const LANGUAGES_OF_STOP = new Map<string, number[]>()
for (const [index, { stops }] of LATIN.entries())
  for (const stop of stops) LANGUAGES_OF_STOP.set(stop, [...(LANGUAGES_OF_STOP.get(stop) ?? []), index])

/** The language of words in Latin letters: that with most stop words among them, English if none has any. */
export function languageOfWords(words: Iterable<string>): Language {
  const counts = new Array<number>(LATIN.length).fill(0)
  let looked_at = 0
  for (const word of words) {
    if (looked_at++ === TELLING_WORDS) break
    for (const index of LANGUAGES_OF_STOP.get(word) ?? NONE) counts[index]! += 1
  }
  return LATIN[counts.indexOf(Math.max(...counts))]!
}

/** The stem of a word as `wordsOf` has it; the word itself where it has no forms, as ids and numbers. */
export function stemOf(word: string, latin: Language): string {
  if (word.length < STEMMED.least || word.length > STEMMED.most) return word
  if (ASCII_WORD.test(word) || LATIN_WORD.test(word)) return latin.stem(word) || word
  return CYRILLIC_WORD.test(word) ? RUSSIAN.stem(word) || word : word
}

/** The stems that a word of a question may have: a question is too short to be sure of its language. */
export function stemsOfAsked(word: string, latin: Language): string[] {
  const stems = latin === ENGLISH ? [stemOf(word, latin)] : [stemOf(word, latin), stemOf(word, ENGLISH)]
  return [...new Set(stems)]
}

/** Whether a word of a question says nothing about what is asked for. */
export function isStopWord(word: string, latin: Language): boolean {
  return word.length === 1 && word < '\x7f'
    ? !/\d/.test(word)
    : latin.stops.has(word) || RUSSIAN.stops.has(word)
}
