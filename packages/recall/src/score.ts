import { SCORE } from './constants.js'
import { gainOf } from './dates.js'
import { STEM_SIGN, STEP_SIGN } from './line.js'
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
}

export interface ScoredSession {
  session_id: string
  score: number
  /** Best first. */
  entries: ScoredEntry[]
}

/** A line that has something that is asked for. */
interface Hit {
  session_id: string
  seq: number
  line: string
  /** By word of the question: how often it stands there as it is, and in any form. */
  exact: number[]
  any: number[]
  /** Words, with those that stand there more than once. */
  length: number
  /** What its score is multiplied by for its time. */
  timely: number
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
  let lines = 0
  for (const run of runs) {
    const ofSession = hits.get(run.session_id) ?? new Map<number, Hit>()
    hits.set(run.session_id, ofSession)
    const timely = run.at === undefined || dates.length === 0 ? 1 : 1 + gainOf(dates, run.at)
    lines += findHits(run, words, timely, ofSession)
  }
  for (const ofSession of hits.values())
    for (const [seq, { line }] of ofSession) if (!isFit(line)) ofSession.delete(seq)
  const all = [...hits.values()].flatMap((ofSession) => [...ofSession.values()])
  const usual = all.reduce((sum, { length }) => sum + length, 0) / Math.max(all.length, 1)
  const told = words.map((_word, index) => weightHere(all, index, lines, weights[index]!))
  const entries: ScoredEntry[] = []
  const sessions: ScoredSession[] = []
  for (const [session_id, ofSession] of hits) {
    const own = new Map([...ofSession].map(([seq, hit]) => [seq, scoreOf(hit, told, usual)]))
    const scored: ScoredEntry[] = []
    for (const seq of ofSession.keys()) {
      const beside = SCORE.beside.reduce(
        (sum, part, index) =>
          sum + part * ((own.get(seq - index - 1) ?? 0) + (own.get(seq + index + 1) ?? 0)),
        0,
      )
      scored.push({ session_id, seq, score: (own.get(seq)! + beside) * ofSession.get(seq)!.timely })
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
  const norm = SCORE.k1 * (1 - SCORE.b + (SCORE.b * hit.length) / usual)
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

/** Finds the words of a question in lines. Returns how many lines there are. */
function findHits(
  { session_id, seq, words }: Lines,
  asked: readonly AskedWord[],
  timely: number,
  hits: Map<number, Hit>,
): number {
  const starts = [0]
  for (let at = words.indexOf('\n'); at >= 0; at = words.indexOf('\n', at + 1)) starts.push(at + 1)
  const hitOf = (line: number): Hit => {
    let hit = hits.get(seq + line)
    if (!hit) {
      const text = words.slice(starts[line], (starts[line + 1] ?? words.length + 1) - 1)
      const none = asked.map(() => 0)
      hit = {
        session_id,
        seq: seq + line,
        line: text,
        exact: none,
        any: [...none],
        length: lengthOf(text),
        timely,
      }
      hits.set(seq + line, hit)
    }
    return hit
  }
  for (const [index, word] of asked.entries()) {
    for (const { form, is_exact } of formsOf(word)) {
      let line = 0
      for (let at = words.indexOf(form); at >= 0; at = words.indexOf(form, at + 1)) {
        // A search for the space before it would stop at each word.
        if (words[at - 1] !== ' ' || !(word.is_prefix || isEnd(words, at + form.length))) continue
        while (line + 1 < starts.length && starts[line + 1]! <= at) line++
        const hit = hitOf(line)
        hit[is_exact ? 'exact' : 'any'][index]! += stepAt(words, starts[line]!, at)
      }
    }
    // Where a word has another stem, a line that has the word has the stem as well.
    const isCounted = word.stems.some((stem) => stem !== word.word)
    for (const line of starts.keys()) {
      const hit = hits.get(seq + line)
      if (!hit) continue
      const exact = hit.exact[index]!
      hit.any[index] = isCounted ? Math.max(hit.any[index]!, exact) : hit.any[index]! + exact
    }
  }
  return starts.length
}

function hasWord(line: string, word: string): boolean {
  return `${line} `.includes(` ${word} `)
}

function isEnd(text: string, at: number): boolean {
  return at >= text.length || text[at] === ' ' || text[at] === '\n'
}

/** How often a word stands in the text, at least: by the sign before it. */
function stepAt(words: string, start: number, at: number): number {
  const sign = words.lastIndexOf(` ${STEP_SIGN}`, at)
  return sign < start ? 1 : Number(words[sign + 2])
}

/** Words in the text of a line. */
function lengthOf(line: string): number {
  let length = 0
  let step = 1
  for (let at = line.indexOf(' '); at >= 0; at = line.indexOf(' ', at + 1)) {
    const sign = line[at + 1]
    if (sign === STEP_SIGN) step = Number(line[at + 2])
    else if (sign !== STEM_SIGN) length += step
  }
  return Math.max(length, 1)
}
