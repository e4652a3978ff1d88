import type { LogEntry, ReadEntry, ToolCall } from './entry.js'
import { SessionReader } from './session_reader.js'

const TEXT_LENGTH_MAX = 300
const FAILED_MAX = 20

/** The calls of one tool. Durations in ms, of calls for which one is known. */
export interface ToolFigures {
  name: string
  calls: number
  failures: number
  durations_ms: number[]
}

/** A failed call: what the tool returned, and what the assistant said next, each cut to 300 characters. */
export interface FailedCall {
  name: string
  seq: number
  result: string
  said: { seq: number; text: string } | null
}

export interface LogFigures {
  /** What a user said first. */
  question: string | null
  calls: number
  failures: number
  tools: ToolFigures[]
  /** The first 20. */
  failed: FailedCall[]
}

/** Figures of a session, from its entries in order of `seq`; with a tool, failed calls of this tool only. */
export function figuresOfLog(entries: Iterable<LogEntry>, tool?: string): LogFigures {
  const reader = new SessionReader()
  const read: ReadEntry[] = []
  for (const entry of entries) read.push(reader.read(entry))
  const calls: ToolCall[] = []
  for (const { blocks } of read)
    for (const block of blocks) if (block.kind === 'call' && !block.is_repeat) calls.push(block.call)
  // A result comes after its call, so verdicts are known only now.
  const failed = calls.filter(({ verdict }) => verdict === 'failed')
  return {
    question: firstQuestion(read) ?? null,
    calls: calls.length,
    failures: failed.length,
    tools: toolsOf(calls),
    failed: failed
      .filter(({ name }) => tool === undefined || name === tool)
      .slice(0, FAILED_MAX)
      .map((call) => {
        const { text = '', seq = call.seq } = call.result ?? {}
        return { name: call.name, seq: call.seq, result: clipped(text), said: saidAfter(read, seq) }
      }),
  }
}

/** What a user said first in a session. */
export function firstQuestion(read: Iterable<ReadEntry>): string | undefined {
  for (const { speaker, kind, blocks } of read) {
    if (kind !== 'message' || speaker !== 'user') continue
    const text = blocks.find((block) => block.kind === 'text')?.text.trim()
    if (text) return text
  }
  return undefined
}

function toolsOf(calls: ToolCall[]): ToolFigures[] {
  const tools = new Map<string, ToolFigures>()
  for (const { name, verdict, result } of calls) {
    const tool = tools.get(name) ?? { name, calls: 0, failures: 0, durations_ms: [] }
    tools.set(name, tool)
    tool.calls += 1
    if (verdict === 'failed') tool.failures += 1
    if (result && result.duration_ms > 0) tool.durations_ms.push(result.duration_ms)
  }
  return [...tools.values()]
}

function saidAfter(read: readonly ReadEntry[], after: number): FailedCall['said'] {
  for (const { seq, kind, speaker, blocks } of read) {
    if (seq <= after || kind !== 'message' || speaker !== 'assistant') continue
    const text = blocks.find((block) => block.kind === 'text')?.text.trim()
    if (text) return { seq, text: clipped(text) }
  }
  return null
}

function clipped(text: string): string {
  return text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}…` : text
}
