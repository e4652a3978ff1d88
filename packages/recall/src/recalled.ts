import { indexedLabel, type SearchedEntry, type Snippet, type Told } from '@annals/messages/search'
import { SCORE } from './constants.js'
import { formsOf, type Question } from './question.js'
import { type ScoredEntry, scoreLines } from './score.js'
import type { TextOfEntry } from './text.js'

/** An entry as the log has it. */
export interface ReadEntry extends SearchedEntry {
  session_id: string
  seq: number
  kind: 'event' | 'message'
  role: string | null
  created_at: string
  occurred_at?: string | null | undefined
}

/** One with the part of its text that has most of what is asked for. */
export interface ShownEntry extends ReadEntry, Told {
  snippet: Snippet
}

export interface RecalledEntry extends ShownEntry {
  score: number
  /** Has the words of the question as they were asked for, one after the other. */
  is_phrase: boolean
  before?: ShownEntry
  after?: ShownEntry
}

export interface RecalledSession {
  session_id: string
  score: number
  entries: RecalledEntry[]
}

/** Of which kind entries are. */
interface EntryKind {
  kind?: 'event' | 'message' | undefined
  type?: string | undefined
  role?: string | undefined
}

/** What the line of an entry must begin with: its label, or the sign of its kind. */
export function labelsOf({ kind, type, role }: EntryKind): string[] {
  return [
    ...(type === undefined ? [] : [`${indexedLabel(type, null)} `]),
    ...(role === undefined ? [] : [`${indexedLabel(null, role)} `]),
    ...(kind === undefined ? [] : [kind === 'event' ? '=' : '@']),
  ]
}

/**
 * What runs must have, as texts of tsquery: by word of the question, of which one is enough. Each includes the labels,
 * and what is in quotes.
 */
export function questionCondition(question: Question, labels: readonly string[]): string[] {
  const words = question.words.map(
    (word) =>
      `(${formsOf(word)
        .map(({ form }) => quoted(form, word.is_prefix))
        .join('|')})`,
  )
  const every = [
    ...labels.map((label) => quoted(label.trimEnd(), !label.endsWith(' '))),
    ...question.required.flatMap(({ words, is_prefix }) =>
      words.map((word, index) => quoted(word, is_prefix && index === words.length - 1)),
    ),
  ]
  return words.map((one) => [one, ...every].join('&'))
}

/** Words have no quotes and no backslashes. */
function quoted(word: string, is_prefix: boolean): string {
  return `'${word}'${is_prefix ? ':*' : ''}`
}

/** Entries that may answer a question, and the sessions that they are in. */
export interface ScoredRuns {
  /** Whether everything that has any of the words was looked at. */
  complete: boolean
  /** Best first. */
  entries: ScoredEntry[]
  sessions: { session_id: string; score: number; entries: ScoredEntry[] }[]
  /** Runs of the sample, and those of them that have each word. */
  counts: number[]
}

/** What is kept: the rest is not shown, whatever is retracted meanwhile. */
const ENTRIES_OF_SESSION_KEPT = 4

/** Node's and the browsers' own. */
declare class TextDecoder {
  constructor(encoding: 'utf-8', options: { ignoreBOM: true })
  decode(bytes: Uint8Array): string
}

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Scores what the database found, `answer`, as its function wrote it. `words`: those of each of its runs, in UTF-8, in
 * memory that threads share. `labels`: what the line of an entry must begin with. `most`: entries, and sessions, that are
 * returned.
 */
export function scoreRuns(
  answer: string,
  words: readonly SharedArrayBuffer[],
  question: Question,
  labels: string[],
  most: number,
): ScoredRuns {
  const found = JSON.parse(answer) as {
    complete: boolean
    weights: number[]
    counts: number[]
    runs: Array<[session_id: string, seq: number, at: number]>
  }
  const runs = found.runs.map(([session_id, seq, at], index) => ({
    session_id,
    seq,
    at,
    words: DECODER.decode(new Uint8Array(words[index]!)),
  }))
  const { entries, sessions } = scoreLines(runs, question, found.weights, labels)
  return {
    complete: found.complete,
    counts: found.counts,
    entries: entries.slice(0, most),
    sessions: sessions.slice(0, most).map(({ session_id, score, entries }) => ({
      session_id,
      score,
      entries: entries.slice(0, ENTRIES_OF_SESSION_KEPT),
    })),
  }
}

const ENTRIES_OF_SESSION = 3

/**
 * Entries to read of what was scored, `most` at most: the first ones, and others of the `fuller` sessions. What has
 * all words may have them one after the other and belong before the rest, wherever it is.
 */
export function entriesToRead(
  { entries, sessions }: Pick<ScoredRuns, 'entries' | 'sessions'>,
  group: 'entry' | 'session',
  { first, fuller, most }: { first: number; fuller: number; most: number },
): ScoredEntry[] {
  const best = group === 'entry' ? entries : sessions.flatMap(({ entries }) => entries.slice(0, 1))
  const places = best.filter(({ has_all }, rank) => has_all || rank < first)
  if (group === 'session')
    for (let rank = 1; rank < ENTRIES_OF_SESSION; rank++)
      places.push(...sessions.slice(0, fuller).flatMap(({ entries }) => entries.slice(rank, rank + 1)))
  return places.slice(0, most)
}

/** Names an entry in maps. */
export function placeOf({ session_id, seq }: { session_id: string; seq: number }): string {
  return `${session_id} ${seq}`
}

/** Those that have what is in quotes: the question as a phrase first, then near words among equals. `texts`: of each, null if it has not. */
export function ranked<Entry extends ReadEntry>(
  entries: readonly Entry[],
  places: readonly ScoredEntry[],
  texts: readonly ((TextOfEntry & Told) | null)[],
): (Entry & RecalledEntry)[] {
  const scores = new Map(places.map((place) => [placeOf(place), place.score]))
  const times = entries.map(({ created_at }) => Date.parse(created_at))
  const [oldest, newest] = [Math.min(...times), Math.max(...times)]
  const found = entries.flatMap((entry, index): (Entry & RecalledEntry)[] => {
    const text = texts[index]
    if (!text) return []
    const age = newest === oldest ? 0 : (newest - times[index]!) / (newest - oldest)
    const score = scores.get(placeOf(entry))! * (1 + SCORE.near * text.nearness) * (1 - SCORE.old * age)
    const { snippet, is_tool_result, is_phrase } = text
    return [{ ...entry, snippet, is_tool_result, score, is_phrase }]
  })
  return phrasesFirst(found, ({ is_phrase }) => is_phrase)
}

/** Best first. Whoever asks with a phrase that was said means it: it goes before loose matches, however many words these have. */
export function phrasesFirst<One extends { score: number }>(
  all: One[],
  isPhrase: (one: One) => boolean,
): One[] {
  const loose = Math.max(0, ...all.filter((one) => !isPhrase(one)).map(({ score }) => score))
  for (const one of all) if (isPhrase(one)) one.score += loose
  return all.sort((a, b) => b.score - a.score)
}

/** Sessions with what was read of them; each gains what its best entry gained when it was read. */
export function sessionsOf(
  { sessions }: Pick<ScoredRuns, 'sessions'>,
  entries: readonly RecalledEntry[],
): RecalledSession[] {
  const ofSession = new Map<string, RecalledEntry[]>()
  for (const entry of entries)
    ofSession.set(entry.session_id, [...(ofSession.get(entry.session_id) ?? []), entry])
  const found = sessions.flatMap(({ session_id, score, entries: scored }): RecalledSession[] => {
    const read = ofSession.get(session_id)
    if (!read) return []
    const before = scored.find(({ seq }) => seq === read[0]!.seq)!.score
    const gained = read[0]!.score - before
    return [{ session_id, score: score + gained, entries: read.slice(0, ENTRIES_OF_SESSION) }]
  })
  return phrasesFirst(found, ({ entries }) => entries[0]!.is_phrase)
}
