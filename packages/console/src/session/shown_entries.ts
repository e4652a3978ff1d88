import { isNoise, isShownElsewhere, type ReadEntry } from '@annals/messages/session'
import { countText } from '../parts/timestamp.tsx'
import type { Reading } from './log_reading.ts'

/** Which entries of a session's log are shown, as in the URL. */
export const SHOWN = {
  messages: 'Messages',
  calls: 'Tool calls',
  failed: 'Failed calls',
  events: 'Events',
} as const
export type Shown = keyof typeof SHOWN | undefined

/** What an address asks for. */
export function shownOf(text: string | null): Shown {
  return text !== null && Object.hasOwn(SHOWN, text) ? (text as Shown) : undefined
}

/** So many events of a type in a row are folded into one line. */
const FOLDED_MIN = 3
/** A run ends with each block of so many entries, so that a long one costs each row little. */
const RUN_MAX = 100
/** The name of the format from which an importer took an event. */
export const SOURCE = /^source\.[\w-]+\./
/** What noise is folded as: its types may differ. */
const NOISE = Symbol('noise')
/** Events that say what became of the session or its log. */
const TELLING = /^(?:annals\.|outcome$)/

export function isKind({ kind, blocks }: ReadEntry, shown: Shown): boolean {
  switch (shown) {
    case undefined:
      return true
    case 'messages':
      return kind === 'message' && blocks.some((block) => block.kind !== 'call' && block.kind !== 'result')
    case 'calls':
      return blocks.some((block) => block.kind === 'call' && !block.is_repeat)
    case 'failed':
      return blocks.some((block) =>
        block.kind === 'call'
          ? block.call.verdict === 'failed' && !block.is_repeat
          : block.kind === 'result' && !block.call && block.result.is_failed,
      )
    case 'events':
      return kind === 'event'
  }
}

/** Where an entry belongs to a run of events of one kind: its first entry, how many there are, and of what. */
export interface Run {
  first: number
  /** How many of which types it has, such as `17 × progress, 1 × mode`. */
  text: string
  /** Whether nothing in it is worth a line of an outline. */
  is_noise: boolean
}

/** The run of an entry, if it is folded: events such as progress, whose number says more than each of them. */
export function runOf({ entries }: Reading, seq: number, shown?: Shown): Run | undefined {
  const kind = foldedKind(entries.get(seq))
  if (kind === undefined) return undefined
  const lowest = seq - ((seq - 1) % RUN_MAX)
  const run = [seq]
  // What has no row interrupts nothing: results that stand with their calls, and what is not shown.
  const reach = (from: number, step: 1 | -1) => {
    for (let at = from; at >= lowest && at < lowest + RUN_MAX; at += step) {
      const read = entries.get(at)
      const here = foldedKind(read)
      if (here === kind) run.push(at)
      else if (here !== undefined || !read || (!isShownElsewhere(read) && isKind(read, shown))) return
    }
  }
  reach(seq - 1, -1)
  run.reverse()
  reach(seq + 1, 1)
  const is_noise = kind === NOISE
  if (!is_noise && run.length < FOLDED_MIN) return undefined
  return { first: run[0]!, text: countsText(run.map((at) => typeOf(entries.get(at)!))), is_noise }
}

function countsText(types: string[]): string {
  const counts = new Map<string, number>()
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1)
  return [...counts].map(([type, count]) => `${countText(count)} × ${type}`).join(', ')
}

/** Events of one kind are folded together. */
function foldedKind(read: ReadEntry | undefined): string | typeof NOISE | undefined {
  if (read?.kind !== 'event' || TELLING.test(read.speaker)) return undefined
  if (!read.blocks.every(({ kind }) => kind === 'data' || kind === 'state')) return undefined
  return isNoise(read) ? NOISE : typeOf(read)
}

function typeOf({ speaker }: ReadEntry): string {
  return speaker.replace(SOURCE, '')
}

/** Whether an entry has no row: the log shows others, or it is folded into an earlier one. */
export function isHidden(reading: Reading, seq: number, shown: Shown, opened: ReadonlySet<number>): boolean {
  const read = reading.entries.get(seq)
  if (!read) return false
  if (!isKind(read, shown)) return true
  const run = runOf(reading, seq, shown)
  return run !== undefined && run.first !== seq && !opened.has(run.first)
}
