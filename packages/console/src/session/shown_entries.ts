import type { ReadEntry } from '@annals/messages/session'
import type { Reading } from './log_reading.ts'

/** What a session's log shows, as in its address. */
export const SHOWN = {
  messages: 'Messages',
  calls: 'Tool calls',
  failed: 'Failed calls',
  events: 'Events',
} as const
export type Shown = keyof typeof SHOWN | undefined

/** So many events of a type in a row are folded into one line. */
const FOLDED_MIN = 3
/** A run ends with each block of so many entries, so that a long one costs each row little. */
const RUN_MAX = 100
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

/** Where an entry belongs to a run of events of one type: its first entry, and how many there are. */
export interface Run {
  first: number
  count: number
  type: string
}

/** The run of an entry, if it is folded: events such as progress, whose number says more than each of them. */
export function runOf({ entries }: Reading, seq: number): Run | undefined {
  const type = noiseType(entries.get(seq))
  if (type === undefined) return undefined
  let [first, last] = [seq, seq]
  const [lowest, highest] = [seq - ((seq - 1) % RUN_MAX), seq - ((seq - 1) % RUN_MAX) + RUN_MAX - 1]
  while (first > lowest && noiseType(entries.get(first - 1)) === type) first -= 1
  while (last < highest && noiseType(entries.get(last + 1)) === type) last += 1
  const count = last - first + 1
  return count < FOLDED_MIN ? undefined : { first, count, type }
}

function noiseType(read: ReadEntry | undefined): string | undefined {
  if (read?.kind !== 'event' || TELLING.test(read.speaker)) return undefined
  return read.blocks.every(({ kind }) => kind === 'data' || kind === 'state') ? read.speaker : undefined
}

/** Whether an entry has no row: the log shows others, or it is folded into an earlier one. */
export function isHidden(reading: Reading, seq: number, shown: Shown, opened: ReadonlySet<number>): boolean {
  const read = reading.entries.get(seq)
  if (!read) return false
  if (!isKind(read, shown)) return true
  const run = runOf(reading, seq)
  return run !== undefined && run.first !== seq && !opened.has(run.first)
}
