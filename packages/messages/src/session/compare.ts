import { writeJson } from '../json/exact_json.js'
import type { LogEntry, Verdict } from './entry.js'
import { isNoise, SessionReader } from './session_reader.js'

/** A step of a run that one entry adds: something said, a call with its result, or an event. */
export interface Step {
  seq: number
  /** The speaker, or the name of the tool or event. */
  name: string
  kind: 'said' | 'call' | 'event'
  text: string
  /** Of a call that was answered. */
  result?: string | undefined
  verdict?: Verdict
}

/** A step of either run, or the two that belong together. */
export interface Row {
  left: Step | undefined
  right: Step | undefined
}

/** The steps of a session, from its entries in order, without noise: no two sessions have the same. */
export function stepsOf(items: readonly LogEntry[]): Step[] {
  const reader = new SessionReader()
  // Read to the end first: a result below belongs to its call.
  const entries = items.map((item) => ({ item, read: reader.read(item) }))
  return entries.flatMap(({ item, read }) => {
    if (isNoise(read)) return []
    const { seq, speaker, kind, blocks } = read
    const steps = blocks.flatMap((block): Step[] => {
      if (block.kind === 'text') return [{ seq, name: speaker, kind: 'said', text: block.text }]
      if (block.kind === 'streamed')
        return block.is_repeat ? [] : [{ seq, name: speaker, kind: 'said', text: block.whole.text }]
      if (block.kind === 'state') return [{ seq, name: block.title, kind: 'event', text: block.summary }]
      if (block.kind === 'data') return [{ seq, name: speaker, kind: 'said', text: writeJson(block.value) }]
      if (block.kind === 'medium') return [{ seq, name: speaker, kind: 'said', text: `(${block.part.type})` }]
      if (block.kind === 'result' && !block.call)
        return [{ seq, name: speaker, kind: 'said', text: block.result.text }]
      if (block.kind !== 'call' || block.is_repeat) return []
      const { name, arguments: text, result, verdict } = block.call
      return [{ seq, name, kind: 'call', text, result: result?.text, verdict }]
    })
    const is_plain = kind === 'event' && blocks.every((block) => block.kind === 'data')
    return is_plain && item.kind === 'event'
      ? [{ seq, name: speaker, kind: 'event', text: writeJson(item.data) }]
      : steps
  })
}

/** Whether two steps that belong together say the same. */
export function isSame({ left, right }: Row): boolean {
  return left !== undefined && right !== undefined && contentOf(left) === contentOf(right)
}

/**
 * Two runs side by side: first what is equal is aligned, and between that, steps of the same kind and name, in their
 * order.
 */
export function align(left: Step[], right: Step[]): Row[] {
  return aligned(left, right, contentOf).flatMap((part) =>
    'same' in part ? part.same : aligned(part.left, part.right, nameOf).flatMap(rowsOf),
  )
}

type Part = { same: Row[] } | { left: Step[]; right: Step[] }

function rowsOf(part: Part): Row[] {
  if ('same' in part) return part.same
  const alone = (step: Step, side: 'left' | 'right'): Row => ({
    left: undefined,
    right: undefined,
    [side]: step,
  })
  return [...part.left.map((step) => alone(step, 'left')), ...part.right.map((step) => alone(step, 'right'))]
}

function aligned(left: Step[], right: Step[], keyOf: (step: Step) => string): Part[] {
  const pairs = commonPairs(left.map(keyOf), right.map(keyOf))
  const parts: Part[] = []
  let [at_left, at_right] = [0, 0]
  for (const [in_left, in_right] of [...pairs, [left.length, right.length] as const]) {
    if (at_left < in_left || at_right < in_right)
      parts.push({ left: left.slice(at_left, in_left), right: right.slice(at_right, in_right) })
    if (in_left < left.length && in_right < right.length) {
      const before = parts.at(-1)
      const row = { left: left[in_left], right: right[in_right] }
      if (before && 'same' in before) before.same.push(row)
      else parts.push({ same: [row] })
    }
    at_left = in_left + 1
    at_right = in_right + 1
  }
  return parts
}

/** Differences up to which two lists are aligned: the time and memory that this takes are bounded. */
const DIFFERENCES_MAX = 1_500

/**
 * The places of what two lists have in common, in order: the shortest edit script of Myers (1986). Lists that have too
 * little in common have only their common beginning.
 */
function commonPairs(a: readonly string[], b: readonly string[]): Array<readonly [number, number]> {
  const traces: Int32Array[] = []
  const most = Math.min(a.length + b.length, DIFFERENCES_MAX)
  const furthest = new Int32Array(2 * most + 3)
  const mid = most + 1
  for (let edits = 0; edits <= most; edits++) {
    // Only so many diagonals can have been reached.
    traces.push(furthest.slice(mid - edits - 1, mid + edits + 2))
    for (let k = -edits; k <= edits; k += 2) {
      const goes_down = k === -edits || (k !== edits && furthest[mid + k - 1]! < furthest[mid + k + 1]!)
      let x = goes_down ? furthest[mid + k + 1]! : furthest[mid + k - 1]! + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1
      furthest[mid + k] = x
      if (x >= a.length && x - k >= b.length) return walkBack(traces, a.length, b.length)
    }
  }
  const beginning = a.findIndex((key, index) => key !== b[index])
  return a.slice(0, beginning < 0 ? b.length : beginning).map((_, index) => [index, index] as const)
}

function walkBack(traces: Int32Array[], a_length: number, b_length: number) {
  const pairs: Array<readonly [number, number]> = []
  let [x, y] = [a_length, b_length]
  for (let edits = traces.length - 1; edits >= 0; edits--) {
    const furthest = traces[edits]!
    const reached = (k: number) => furthest[k + edits + 1]!
    const k = x - y
    const goes_down = k === -edits || (k !== edits && reached(k - 1) < reached(k + 1))
    const before = goes_down ? k + 1 : k - 1
    const x_before = edits === 0 ? 0 : reached(before)
    const y_before = edits === 0 ? 0 : x_before - before
    while (x > x_before && y > y_before && x > 0 && y > 0) pairs.push([--x, --y] as const)
    x = x_before
    y = y_before
  }
  return pairs.reverse()
}

/** The differences of two runs, for a person who looks first at where they part. */
export interface Comparison {
  rows: Row[]
  /** How many of the rows differ. */
  different: number
  /** Where the runs part: the place of the first row that differs; undefined if none does. */
  parts_at: number | undefined
  /** Calls that only one of the runs has, in its order. */
  only_left: Step[]
  only_right: Step[]
}

/** Compares two runs. */
export function compareSteps(left: Step[], right: Step[]): Comparison {
  const rows = align(left, right)
  const parts_at = rows.findIndex((row) => !isSame(row))
  const alone = (side: 'left' | 'right', other: 'left' | 'right') =>
    rows.flatMap((row) => (row[other] === undefined && row[side]?.kind === 'call' ? [row[side]] : []))
  return {
    rows,
    different: rows.filter((row) => !isSame(row)).length,
    parts_at: parts_at < 0 ? undefined : parts_at,
    only_left: alone('left', 'right'),
    only_right: alone('right', 'left'),
  }
}

function nameOf({ kind, name }: Step): string {
  return `${kind}\0${name}`
}

function contentOf(step: Step): string {
  return `${nameOf(step)}\0${step.text}\0${step.result ?? ''}\0${step.verdict ?? ''}`
}
