import { SCORE } from './constants.js'
import { gainOf } from './dates.js'
import { STEP_SIGN } from './line.js'
import { type AskedWord, formsOf, type Question } from './question.js'

/** Entries of a session that follow each other: a line of each, which begins with the entry's label. */
export interface Lines {
  session_id: string
  /** Of the first one. */
  seq: number
  words: string
  /** When the first of them happened, in ms. */
  at?: number
}

export interface ScoredEntry {
  session_id: string
  seq: number
  score: number
  /** Has all words of a question as they were asked for: perhaps one after the other. */
  has_all?: true
}

export interface ScoredSession {
  session_id: string
  score: number
  /** Best first. */
  entries: ScoredEntry[]
}

const NONE: readonly never[] = []

/** Lines of so many characters are looked through once, such as the instructions that many sessions begin with. */
const REPEATED_LENGTH_MIN = 512

/** By word of the question: how often it stands in a line as it is, and in any form. */
interface Found {
  exact: readonly number[]
  any: readonly number[]
}

/** A line that has something that is asked for. */
interface Hit extends Found {
  session_id: string
  seq: number
  line: string
  /** What its score is multiplied by for its time. */
  timely: number
  /** What it scores by itself. */
  own: number
}

/**
 * The entries among lines that have any word of a question, best first: BM25, with a part of what the entries beside them
 * have. `weights`: how much each word tells; what most of the lines have tells less than that. `labels`: what a line must
 * begin with. Lines without what is in quotes, or with a word that is excluded, are left out.
 */
export function scoreLines(
  runs: readonly Lines[],
  { words, required, excluded, dates }: Question,
  weights: readonly number[],
  labels: readonly string[] = [],
): { entries: ScoredEntry[]; sessions: ScoredSession[] } {
  const hits = new Map<string, Map<number, Hit>>()
  const needed = required.flatMap(({ words, is_prefix }) => (is_prefix ? words.slice(0, -1) : words))
  const unwanted = excluded.flatMap(({ words, is_prefix }) => (words.length === 1 && !is_prefix ? words : []))
  const isFit = (line: string) =>
    labels.every((label) => line.startsWith(label)) &&
    needed.every((word) => hasWord(line, word)) &&
    !unwanted.some((word) => hasWord(line, word))
  const sought = soughtOf(words)
  const known = new Map<string, Found | undefined>()
  let lines = 0
  for (const run of runs) {
    const ofSession = hits.get(run.session_id) ?? new Map<number, Hit>()
    hits.set(run.session_id, ofSession)
    const timely = run.at === undefined || dates.length === 0 ? 1 : 1 + gainOf(dates, run.at)
    lines += findHits(run, sought, timely, ofSession, known)
  }
  for (const ofSession of hits.values())
    for (const [seq, { line }] of ofSession) if (!isFit(line)) ofSession.delete(seq)
  const all = [...hits.values()].flatMap((ofSession) => [...ofSession.values()])
  const usual = all.reduce((sum, { line }) => sum + line.length, 0) / Math.max(all.length, 1)
  const told = words.map((_word, index) => weightHere(all, index, lines, weights[index]!))
  const entries: ScoredEntry[] = []
  const sessions: ScoredSession[] = []
  for (const [session_id, ofSession] of hits) {
    for (const hit of ofSession.values()) hit.own = scoreOf(hit, told, usual)
    const scored: ScoredEntry[] = []
    for (const { seq, own, timely, exact } of ofSession.values()) {
      let score = own
      for (let away = 1; away <= SCORE.beside.length; away++) {
        const beside = (ofSession.get(seq - away)?.own ?? 0) + (ofSession.get(seq + away)?.own ?? 0)
        score += SCORE.beside[away - 1]! * beside
      }
      const entry: ScoredEntry = { session_id, seq, score: score * timely }
      if (!exact.includes(0)) entry.has_all = true
      scored.push(entry)
    }
    scored.sort((a, b) => b.score - a.score)
    sessions.push({
      session_id,
      score: scoreOfSession(scored, [...ofSession.values()], told),
      entries: scored,
    })
    entries.push(...scored)
  }
  return {
    entries: entries.sort((a, b) => b.score - a.score),
    sessions: sessions.sort((a, b) => b.score - a.score),
  }
}

/** What its best entry has, and what all of them say together. */
function scoreOfSession(
  scored: readonly ScoredEntry[],
  hits: readonly Hit[],
  told: readonly number[],
): number {
  const timely = Math.max(1, ...hits.map((hit) => hit.timely))
  let score = scored[0]?.score ?? 0
  for (const [word, weight] of told.entries()) {
    let count = 0
    for (const hit of hits) count += Math.min(countOf(hit, word), 2)
    score +=
      (timely * (SCORE.together * weight * count * (SCORE.together_k + 1))) / (count + SCORE.together_k)
  }
  return score
}

/** How much a word tells among these lines: a name that every other one has tells nothing, rare as it may be elsewhere. */
function weightHere(hits: readonly Hit[], word: number, lines: number, weight: number): number {
  let count = 0
  for (const { any } of hits) if (any[word]! > 0) count += 1
  const here = Math.log(1 + (lines - count + 0.5) / (count + 0.5))
  return SCORE.local * here + (1 - SCORE.local) * weight
}

/** How often an entry has a word: as it stands, it counts for a little more. */
function countOf({ exact, any }: Hit, word: number): number {
  return any[word]! + exact[word]! * (SCORE.exact - 1)
}

function scoreOf(hit: Hit, weights: readonly number[], usual: number): number {
  const norm = SCORE.k1 * (1 - SCORE.b + (SCORE.b * hit.line.length) / usual)
  let score = 0
  let covered = 0
  let whole = 0
  for (const [word, weight] of weights.entries()) {
    const count = countOf(hit, word)
    score += (weight * count * (SCORE.k1 + 1)) / (count + norm)
    whole += weight
    if (count > 0) covered += weight
  }
  return score * (1 + (SCORE.cover * covered) / (whole || 1)) * weightOfLabel(hit.line)
}

function weightOfLabel(line: string): number {
  if (line.startsWith('@tool ')) return SCORE.label.tool
  if (line.startsWith('=source_')) return SCORE.label.source
  return line.startsWith('=') ? SCORE.label.event : 1
}

/** What is looked for in lines, all of it in one pass. */
interface Sought {
  /** By word of the question: whether it has another stem, which a line that has the word has as well. */
  hasOtherStem: readonly boolean[]
  /** A form of a word, or the sign of a step, after a space each. */
  pattern: RegExp
  /** Which words of the question a form is one of. */
  wordsOf(form: string): readonly { index: number; is_exact: boolean }[]
}

function soughtOf(asked: readonly AskedWord[]): Sought {
  const whole = new Map<string, { index: number; is_exact: boolean }[]>()
  const beginnings: { beginning: string; index: number; is_exact: true }[] = []
  for (const [index, word] of asked.entries())
    for (const { form, is_exact } of formsOf(word)) {
      if (word.is_prefix) beginnings.push({ beginning: form, index, is_exact: true })
      else whole.set(form, [...(whole.get(form) ?? []), { index, is_exact }])
    }
  // Forms are letters and digits, and the sign of a stem, which means nothing in a pattern.
  const patterns = [
    `${STEP_SIGN}\\d`,
    ...[...whole.keys()].map((form) => `${form}(?![^ \\n])`),
    ...beginnings.map(({ beginning }) => `${beginning}[^ \\n]*`),
  ]
  const wordsOf = (form: string) => {
    const found = whole.get(form) ?? NONE
    const begun = beginnings.filter(({ beginning }) => form.startsWith(beginning))
    return begun.length === 0 ? found : [...found, ...begun]
  }
  const hasOtherStem = asked.map(({ word, stems }) => stems.some((stem) => stem !== word))
  // recheck: a word of at most so many, each matched once from where a word begins, and nothing after it
  return { hasOtherStem, pattern: new RegExp(` (?:${patterns.join('|')})`, 'g'), wordsOf }
}

/** Finds the words of a question in lines. Returns how many lines there are. `known`: long lines that others repeat. */
function findHits(
  { session_id, seq, words }: Lines,
  sought: Sought,
  timely: number,
  hits: Map<number, Hit>,
  known: Map<string, Found | undefined>,
): number {
  let lines = 0
  for (let start = 0; start <= words.length; lines++) {
    const end = endOfLine(words, start)
    const line = words.slice(start, end)
    const found = line.length < REPEATED_LENGTH_MIN ? findIn(line, sought) : findOnce(line, sought, known)
    if (found) {
      const at = seq + lines
      hits.set(at, { session_id, seq: at, line, exact: found.exact, any: found.any, timely, own: 0 })
    }
    start = end + 1
  }
  return lines
}

function findOnce(line: string, sought: Sought, known: Map<string, Found | undefined>): Found | undefined {
  if (!known.has(line)) known.set(line, findIn(line, sought))
  return known.get(line)
}

/** How often a line has each word; undefined where it has none. */
function findIn(line: string, { hasOtherStem, pattern, wordsOf }: Sought): Found | undefined {
  let exact: number[] | undefined
  let other: number[] = []
  let step = 1
  pattern.lastIndex = 0
  for (let match = pattern.exec(line); match; match = pattern.exec(line)) {
    const form = match[0]
    if (form[1] === STEP_SIGN) {
      step = Number(form[2])
      continue
    }
    if (!exact) {
      exact = hasOtherStem.map(() => 0)
      other = hasOtherStem.map(() => 0)
    }
    for (const { index, is_exact } of wordsOf(form.slice(1))) (is_exact ? exact : other)[index]! += step
  }
  if (!exact) return undefined
  const any = exact.map((count, index) =>
    hasOtherStem[index] ? Math.max(other[index]!, count) : other[index]! + count,
  )
  return { exact, any }
}

function endOfLine(words: string, start: number): number {
  const end = words.indexOf('\n', start)
  return end < 0 ? words.length : end
}

function hasWord(line: string, word: string): boolean {
  return `${line} `.includes(` ${word} `)
}
