import type { TimelineItem } from '@annals/client'
import { type ReadEntry, SessionReader, type ToolCall } from '@annals/messages/session'
import { useMemo, useRef } from 'react'

/** What the entries of a log say, by seq, and the tool calls in it, each once. */
export interface Reading {
  entries: ReadonlyMap<number, ReadEntry>
  calls: readonly ToolCall[]
}

/** Reads a log that grows: what was read is not read again, unless entries before it arrive. */
export class LogReading {
  private reader = new SessionReader()
  private items: TimelineItem[] = []
  private entries = new Map<number, ReadEntry>()
  private calls: ToolCall[] = []

  follow(items: TimelineItem[]): Reading {
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
    // A new object each time, so that what shows it looks again.
    return { entries: this.entries, calls: this.calls }
  }

  /** Entries never go, so what has the same first and last one has all that lie between. */
  private isContinuedBy(items: TimelineItem[]): boolean {
    const { length } = this.items
    return (
      length <= items.length &&
      this.items[0]?.id === (length > 0 ? items[0]?.id : undefined) &&
      this.items[length - 1]?.id === items[length - 1]?.id
    )
  }
}

/** What a log says, as far as it was read. */
export function useReading(items: TimelineItem[]): Reading {
  const reading = useRef<LogReading>(null)
  reading.current ??= new LogReading()
  const { current } = reading
  return useMemo(() => current.follow(items), [current, items])
}

/** Changes whenever what is to be shown of an entry does: a result that arrives belongs to a call far above it. */
export function versionOf({ blocks }: ReadEntry): number {
  return blocks.reduce((sum, block) => sum + ('call' in block ? (block.call?.version ?? 0) : 0), 0)
}
