import { wordsOf } from '@annals/messages/search'
import { findByTask } from '@annals/recall'
import type { PassedStatement } from './gates.js'

/** A statement that a space has. */
export interface KnownStatement {
  id: string
  kind: string
  text: string
}

/** What a model says of a candidate, both by their places in what it was shown. */
export interface Decision {
  candidate: number
  action: 'add' | 'support' | 'contradict' | 'nothing'
  statement: number | null
}

/** What is done with a candidate. `id`: the statement that it supports or contradicts. */
export type Delta =
  | { action: 'add'; candidate: PassedStatement }
  | { action: 'support' | 'contradict'; candidate: PassedStatement; id: string }

const NEAREST_MAX = 5
/** Share of the words of the shorter text. */
const SHARED_WORDS_MIN = 0.3

/** The statements that may say the same as one of the candidates, or the opposite. */
export function nearestStatements(
  candidates: readonly PassedStatement[],
  known: readonly KnownStatement[],
): KnownStatement[] {
  const find = findByTask(known, ({ text }) => text)
  const near = candidates.flatMap(({ text }) =>
    find(text)
      .slice(0, NEAREST_MAX)
      .filter((statement) => sharesWords(text, statement.text)),
  )
  return [...new Set(near)].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/**
 * What is done with the candidates, of which a model may decide only this. A candidate supports what speaks of the same
 * and is of its kind; each statement is touched once. What the model says nothing of is dropped.
 */
export function deltasOf(
  candidates: readonly PassedStatement[],
  near: readonly KnownStatement[],
  decisions: readonly Decision[] | undefined,
): Delta[] {
  if (!decisions) return candidates.map((candidate) => ({ action: 'add', candidate }))
  const touched = new Set<string>()
  return candidates.flatMap((candidate, index): Delta[] => {
    const decision = decisions.find((one) => one.candidate === index)
    if (!decision || decision.action === 'nothing') return []
    const { action } = decision
    if (action === 'add') return [{ action, candidate }]
    const statement = near[decision.statement ?? -1]
    if (!statement || touched.has(statement.id) || !sharesWords(candidate.text, statement.text)) return []
    if (action === 'support' && statement.kind !== candidate.kind) return [{ action: 'add', candidate }]
    touched.add(statement.id)
    return [{ action, candidate, id: statement.id }]
  })
}

function sharesWords(one: string, other: string): boolean {
  const [words, others] = [wordSet(one), wordSet(other)]
  const shared = [...words].filter((word) => others.has(word)).length
  return shared >= SHARED_WORDS_MIN * Math.min(words.size, others.size)
}

function wordSet(text: string): Set<string> {
  return new Set(wordsOf(text).map((word) => word.text))
}
