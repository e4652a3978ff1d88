import { type Question, type ScoredEntry, scoreLines } from '@annals/recall'

/** Entries that may answer a question, and the sessions that they are in. */
export interface ScoredRuns {
  /** Whether everything that has any of the words was looked at. */
  complete: boolean
  /** Best first. */
  entries: ScoredEntry[]
  sessions: { session_id: string; score: number; entries: ScoredEntry[] }[]
}

/** What is kept: the rest is not shown, whatever is retracted meanwhile. */
const ENTRIES_OF_SESSION_MAX = 4

/**
 * Scores what the database found, `answer`, as its function wrote it. `labels`: what the line of an entry must begin
 * with. `most`: entries, and sessions, that are returned.
 */
export function scoreRuns(answer: string, question: Question, labels: string[], most: number): ScoredRuns {
  const found = JSON.parse(answer) as {
    complete: boolean
    weights: number[]
    runs: Array<[session_id: string, seq: number, words: string, at: number]>
  }
  const runs = found.runs.map(([session_id, seq, words, at]) => ({ session_id, seq, words, at }))
  const { entries, sessions } = scoreLines(runs, question, found.weights, labels)
  return {
    complete: found.complete,
    entries: entries.slice(0, most),
    sessions: sessions.slice(0, most).map(({ session_id, score, entries }) => ({
      session_id,
      score,
      entries: entries.slice(0, ENTRIES_OF_SESSION_MAX),
    })),
  }
}
