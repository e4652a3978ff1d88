import { readFileSync } from 'node:fs'
import type { Block, LogEntry, ReadEntry, ToolCall } from '../src/session/index.js'

/** A session, and the calls that every reader must find in it. */
export interface SessionVector {
  name: string
  entries: Record<string, unknown>[]
  calls: VectorCall[]
  /** The seqs of entries of which nothing is left to show. */
  shown_elsewhere: number[]
}

export interface VectorCall {
  number: number | undefined
  name: string
  seq: number
  verdict: string
  arguments: string
  result: { seq: number; text: string } | null
}

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`vectors/${name}.json`, import.meta.url), 'utf8'))

export const SESSION_VECTORS = read('calls').vectors as SessionVector[]
export const RESULT_TEXTS = read('failures') as { failed: string[]; fine: string[] }

/** The entries of a vector as the API's timeline gives them. */
export function logOf({ entries }: Pick<SessionVector, 'entries'>): LogEntry[] {
  return entries.map((entry, index) => ({
    ...entry,
    id: idOf(index),
    parent_id: index === 0 ? null : idOf(index - 1),
    role: 'user',
    meta: {},
    seq: index + 1,
    created_at: new Date(Date.UTC(2026, 10, 20, 12) + index * 1_000).toISOString(),
  })) as unknown as LogEntry[]
}

function idOf(index: number): string {
  return `0190d3a8-0000-7000-8000-${String(index).padStart(12, '0')}`
}

/** The calls of entries, each once. */
export function callsOf(entries: readonly ReadEntry[]): ToolCall[] {
  const blocks: Block[] = entries.flatMap((entry) => entry.blocks)
  return blocks.flatMap((block) => (block.kind === 'call' && !block.is_repeat ? [block.call] : []))
}

/** A call as a vector has it. */
export function asVector({ number, name, seq, verdict, arguments: given, result }: ToolCall): VectorCall {
  return {
    number,
    name,
    seq,
    verdict,
    arguments: given,
    result: result ? { seq: result.seq, text: result.text } : null,
  }
}
