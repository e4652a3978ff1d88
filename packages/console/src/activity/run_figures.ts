import type { Session } from '@annals/client'
import { type OutcomeWords, outcomeOf } from '@annals/messages/session'
import { isObject } from '../json/exact_json.ts'
import type { SessionFigures } from '../sessions/facts_query.ts'

/** A session with its figures. */
export interface Run {
  session: Session
  figures: SessionFigures | undefined
}

/** Figures of one agent: its sessions, and how they ended. */
export interface AgentFigures {
  name: string
  sessions: number
  failed: number
  /** Sessions whose configs tell an outcome. */
  known: number
  tokens: number
  calls: number
  failures: number
  durations_ms: number[]
  /** Whether the calls of all sessions were counted to the end of their logs. */
  is_whole: boolean
}

/** The members of configs by which runs can be told apart, the likeliest first. */
export function keysOf(runs: readonly Run[]): string[] {
  const keys = new Set(['agent'])
  for (const { session } of runs)
    for (const [key, value] of Object.entries(session.configs))
      if (['string', 'number', 'boolean'].includes(typeof value)) keys.add(key)
  return [...keys]
}

/** Figures by the value of one member of configs, those with most sessions first. */
export function byAgent(runs: readonly Run[], key: string, words?: OutcomeWords): AgentFigures[] {
  const agents = new Map<string, AgentFigures>()
  for (const { session, figures } of runs) {
    const value = session.configs[key]
    const name = value === undefined || isObject(value) ? `no ${key}` : String(value)
    const empty = { sessions: 0, failed: 0, known: 0, tokens: 0, calls: 0, failures: 0 }
    const agent = agents.get(name) ?? { name, ...empty, durations_ms: [], is_whole: true }
    agents.set(name, agent)
    const outcome = outcomeOf(session.configs, words)
    agent.sessions += 1
    if (outcome) agent.known += 1
    if (outcome?.verdict === 'failed') agent.failed += 1
    if (!figures) continue
    agent.tokens += figures.total_tokens
    agent.calls += figures.calls
    agent.failures += figures.failures
    agent.is_whole &&= figures.is_whole
    if (figures.duration_ms > 0) agent.durations_ms.push(figures.duration_ms)
  }
  return [...agents.values()].sort((a, b) => b.sessions - a.sessions)
}

/** The value that a share of the values does not exceed; undefined if there is none. */
export function quantileOf(values: readonly number[], share: number): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.max(Math.ceil(values.length * share) - 1, 0)]
}
