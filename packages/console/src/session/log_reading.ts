import type { TimelineItem } from '@annals/client'
import { isShownElsewhere, type ReadEntry, SessionReader, type ToolCall } from '@annals/messages/session'
import { useMemo, useRef } from 'react'

/** The reading of a log's entries, by seq, and its tool calls, each once. */
export interface Reading {
  entries: ReadonlyMap<number, ReadEntry>
  calls: readonly ToolCall[]
}

const NO_NUMBERS: ReadonlyMap<number, number> = new Map()

/** Reads a growing log: entries are read once, unless earlier ones arrive. */
export class LogReading {
  private reader = new SessionReader()
  private items: TimelineItem[] = []
  private entries = new Map<number, ReadEntry>()
  private calls: ToolCall[] = []

  /** @param numbers of calls below a gap: by seq, the number of the first call that is recorded there */
  follow(items: TimelineItem[], numbers: ReadonlyMap<number, number> = NO_NUMBERS): Reading {
    if (!this.isContinuedBy(items)) {
      this.reader = new SessionReader()
      this.items = []
      this.entries = new Map()
      this.calls = []
    }
    for (let index = this.items.length; index < items.length; index++) {
      const entry = this.reader.read(items[index]!)
      this.entries.set(entry.seq, entry)
      for (const block of entry.blocks)
        if (block.kind === 'call' && !block.is_repeat) this.calls.push(block.call)
    }
    this.items = items
    if (numbers.size > 0) this.number(numbers)
    // A new object each time, so that components render again.
    return { entries: this.entries, calls: this.calls }
  }

  private number(numbers: ReadonlyMap<number, number>): void {
    let [seq, next] = [0, 0]
    for (const call of this.calls) {
      if (call.seq !== seq) next = numbers.get(call.seq) ?? Number.NaN
      seq = call.seq
      if (call.number === undefined && next > 0) call.number = next
      next += 1
    }
  }

  /** Entries are never removed, so equal first and last entries mean that all between are equal. */
  private isContinuedBy(items: TimelineItem[]): boolean {
    const { length } = this.items
    return (
      length <= items.length &&
      this.items[0]?.id === (length > 0 ? items[0]?.id : undefined) &&
      this.items[length - 1]?.id === items[length - 1]?.id
    )
  }
}

/** The reading of a log, as far as it was loaded. */
export function useReading(items: TimelineItem[], numbers: ReadonlyMap<number, number>): Reading {
  const reading = useRef<LogReading>(null)
  reading.current ??= new LogReading()
  const { current } = reading
  return useMemo(() => current.follow(items, numbers), [current, items, numbers])
}

/** Changes whenever an entry must be rendered again: a new result may belong to a call far above. */
export function versionOf({ blocks }: ReadEntry): number {
  return blocks.reduce((sum, block) => {
    if (block.kind === 'streamed') return sum + block.whole.text.length
    return sum + ('call' in block && block.call ? block.call.version + (block.call.number ?? 0) : 0)
  }, 0)
}

/** The seq at which an entry is shown: that of the call to which it belongs, or its own. */
export function shownAt({ entries }: Reading, seq: number): number {
  const read = entries.get(seq)
  if (!read || !isShownElsewhere(read)) return seq
  const [block] = read.blocks
  if (block?.kind === 'streamed') return block.whole.seq
  return (block && 'call' in block && block.call?.seq) || seq
}

const LOOK_BACK_MAX = 100

/**
 * When the entry before this one ended, so that no pause is shown twice: an entry that is shown elsewhere counts only
 * as the result that ends its call's duration.
 */
export function momentBefore({ entries }: Reading, seq: number): string | undefined {
  for (let earlier = seq - 1; earlier > seq - LOOK_BACK_MAX; earlier--) {
    const read = entries.get(earlier)
    if (!read) return undefined
    const ends_call = read.blocks.some((block) => block.kind === 'result' && !block.is_repeat)
    if (ends_call || !isShownElsewhere(read)) return read.created_at
  }
  return undefined
}

/** Where calls stand that failed. */
export function failedCalls({ calls }: Reading): number[] {
  return calls.filter(({ verdict }) => verdict === 'failed').map(({ seq }) => seq)
}

const LONG_MS = 5_000

/** The entries before which nothing happened for long, and the calls that took long; in order. */
export function longPauses(reading: Reading): number[] {
  const seqs = new Set<number>()
  for (const { seq, created_at } of reading.entries.values()) {
    const before = momentBefore(reading, seq)
    const is_long = before !== undefined && Date.parse(created_at) - Date.parse(before) >= LONG_MS
    if (is_long && shownAt(reading, seq) === seq) seqs.add(seq)
  }
  for (const { seq, result } of reading.calls) if (result && result.duration_ms >= LONG_MS) seqs.add(seq)
  return [...seqs].sort((a, b) => a - b)
}
