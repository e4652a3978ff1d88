import type { TimelineItem } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import { SessionReader, type Verdict } from '@annals/messages/session'
import { diffArrays } from 'diff'

/** What one entry adds to a run: something said, a call with its result, or an event. */
export interface Step {
  seq: number
  /** Who speaks, or the name of the tool or event. */
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

const ALIGN_MS_MAX = 1_000

/** The steps of a session, from its entries in order. */
export function stepsOf(items: readonly TimelineItem[]): Step[] {
  const reader = new SessionReader()
  // Read to the end first: a result below belongs to its call.
  const entries = items.map((item) => ({ item, read: reader.read(item) }))
  return entries.flatMap(({ item, read: { seq, speaker, kind, blocks } }) => {
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
  const changes = diffArrays(left.map(keyOf), right.map(keyOf), { timeout: ALIGN_MS_MAX })
  // Runs that have too little in common are shown one below the other.
  if (!changes) return [{ left, right }]
  const parts: Part[] = []
  let [at_left, at_right] = [0, 0]
  for (const { added, removed, count } of changes) {
    const from_left = added ? [] : left.slice(at_left, at_left + count)
    const from_right = removed ? [] : right.slice(at_right, at_right + count)
    at_left += from_left.length
    at_right += from_right.length
    const before = parts.at(-1)
    if (!added && !removed)
      parts.push({ same: from_left.map((step, index) => ({ left: step, right: from_right[index] })) })
    else if (before && 'left' in before) {
      before.left.push(...from_left)
      before.right.push(...from_right)
    } else parts.push({ left: from_left, right: from_right })
  }
  return parts
}

function nameOf({ kind, name }: Step): string {
  return `${kind}\0${name}`
}

function contentOf(step: Step): string {
  return `${nameOf(step)}\0${step.text}\0${step.result ?? ''}\0${step.verdict ?? ''}`
}
