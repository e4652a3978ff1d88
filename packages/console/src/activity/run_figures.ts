import type { Session } from '@annals/client'
import type { FailedCall } from '@annals/messages/session'
import { outcomeOf } from '@annals/messages/session'
import { isObject } from '../json/exact_json.ts'
import type { SessionFigures } from '../sessions/facts_query.ts'

/** A session with its figures. */
export interface Run {
  session: Session
  figures: SessionFigures | undefined
}

/** What is told of one agent: its sessions, and how they ended. */
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
}

/** What is told of one tool; `failed` are its failed calls with their sessions, newest session first. */
export interface ToolOverview {
  name: string
  sessions: number
  calls: number
  failures: number
  durations_ms: number[]
  failed: Array<FailedCall & { run: Run }>
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
export function byAgent(runs: readonly Run[], key: string): AgentFigures[] {
  const agents = new Map<string, AgentFigures>()
  for (const { session, figures } of runs) {
    const value = session.configs[key]
    const name = value === undefined || isObject(value) ? `no ${key}` : String(value)
    const empty = { sessions: 0, failed: 0, known: 0, tokens: 0, calls: 0, failures: 0 }
    const agent = agents.get(name) ?? { name, ...empty, durations_ms: [] }
    agents.set(name, agent)
    const outcome = outcomeOf(session.configs)
    agent.sessions += 1
    if (outcome) agent.known += 1
    if (outcome?.verdict === 'failed') agent.failed += 1
    if (!figures) continue
    agent.tokens += figures.total_tokens
    agent.calls += figures.calls
    agent.failures += figures.failures
    if (figures.duration_ms > 0) agent.durations_ms.push(figures.duration_ms)
  }
  return [...agents.values()].sort((a, b) => b.sessions - a.sessions)
}

/** Figures by tool, those that failed most first. */
export function byTool(runs: readonly Run[]): ToolOverview[] {
  const tools = new Map<string, ToolOverview>()
  for (const run of runs) {
    for (const { name, calls, failures, durations_ms } of run.figures?.tools ?? []) {
      const tool = tools.get(name) ?? {
        name,
        sessions: 0,
        calls: 0,
        failures: 0,
        durations_ms: [],
        failed: [],
      }
      tools.set(name, tool)
      tool.sessions += 1
      tool.calls += calls
      tool.failures += failures
      tool.durations_ms.push(...durations_ms)
    }
    for (const call of run.figures?.failed ?? []) tools.get(call.name)?.failed.push({ ...call, run })
  }
  return [...tools.values()].sort((a, b) => b.failures - a.failures || b.calls - a.calls)
}

/** The value that a share of the values does not exceed; undefined if there is none. */
export function quantileOf(values: readonly number[], share: number): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.max(Math.ceil(values.length * share) - 1, 0)]
}
