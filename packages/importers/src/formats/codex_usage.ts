import { objectIn } from '../json.js'
import type { JsonObject } from '../records.js'

/** Codex's names of counts, and those of spans. Input includes what was cached, and output what was thought. */
const COUNTS = {
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
  cached_input_tokens: 'cached_tokens',
  cache_write_input_tokens: 'cache_write_tokens',
  reasoning_output_tokens: 'reasoning_tokens',
} as const
type Name = keyof typeof COUNTS
const NAMES = Object.keys(COUNTS) as Name[]
type Counts = Record<Name, number>

/**
 * Tells what each call of the model used. Codex writes totals after each call, and again when nothing was used but a limit
 * or the size of a context has changed. A session that is resumed goes on with its totals, or counts anew.
 */
export class CodexUsage {
  private before: Counts | undefined

  /** What was used since the last time, as a span has it; undefined if nothing was. */
  since(total_usage: unknown, last_usage?: unknown): JsonObject | undefined {
    const last = countsIn(last_usage)
    const total = countsIn(total_usage)
    const { before } = this
    if (total === undefined) return usageOf(last)
    this.before = total
    // Nobody knows what a file whose beginning is missing had used before.
    if (before === undefined) return usageOf(last ?? total)
    const difference = combined(total, before, (one, other) => one - other)
    const is_anew =
      NAMES.some((name) => difference[name] < 0) ||
      (last !== undefined && !isSame(last, difference) && isSame(last, total) && !isSame(total, before))
    return usageOf(is_anew ? (last ?? total) : difference)
  }
}

function countsIn(usage: unknown): Counts | undefined {
  const given = objectIn(usage)
  if (!('input_tokens' in given || 'output_tokens' in given)) return undefined
  return Object.fromEntries(NAMES.map((name) => [name, countOf(given[name])])) as Counts
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0
}

function combined(one: Counts, other: Counts, combine: (one: number, other: number) => number): Counts {
  return Object.fromEntries(NAMES.map((name) => [name, combine(one[name], other[name])])) as Counts
}

function isSame(one: Counts, other: Counts): boolean {
  return NAMES.every((name) => one[name] === other[name])
}

function usageOf(counts: Counts | undefined): JsonObject | undefined {
  if (counts === undefined || NAMES.every((name) => counts[name] === 0)) return undefined
  const used = NAMES.filter((name) => counts[name] > 0 || /^(?:in|out)put_tokens$/.test(name))
  return {
    ...Object.fromEntries(used.map((name) => [COUNTS[name], counts[name]])),
    total_tokens: counts.input_tokens + counts.output_tokens,
  }
}
