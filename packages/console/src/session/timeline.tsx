import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { type Ref, useEffect, useImperativeHandle, useRef, useState } from 'react'
import type { Json } from '../json/exact_json.ts'
import { countText } from '../parts/timestamp.tsx'
import { EntryRow } from './entry_row.tsx'
import type { Log } from './log_query.ts'
import { momentBefore, type Reading, versionOf } from './log_reading.ts'
import { isHidden, runOf, type Shown } from './shown_entries.ts'

const ENTRY_PX = 120
const ENTRIES_AHEAD = 8
/** Distance from the end at which new entries are followed. */
const AT_END_PX = 120
/** Where the reader looks, below the upper edge: what was jumped to stands there. */
const READ_PX = 24

/** A single function for all renders: a new one would recompute the positions of all entries. */
const seqAt = (index: number) => index + 1

/**
 * Whether to keep the visible part in place when an entry above turns out taller than estimated. Not while scrolling
 * down, where nobody has seen the skipped entries: each such step recomputes the positions of all entries.
 */
const keepsInPlace: Virtualizer<HTMLDivElement, Element>['shouldAdjustScrollPositionOnItemSizeChange'] = (
  { start },
  _delta,
  { scrollDirection, scrollOffset },
) => scrollDirection !== 'forward' && start < (scrollOffset ?? 0)

export interface TimelineHandle {
  goTo: (seq: number) => void
}

interface TimelineProps {
  log: Log
  opened_at: number
  reading: Reading
  current: number | undefined
  matches: ReadonlySet<number>
  /** Which kind of entries has rows. */
  shown: Shown
  /** The first entries of runs that were unfolded. */
  opened: ReadonlySet<number>
  onOpen: (first: number) => void
  converted: ReadonlyMap<string, Json> | undefined
  onJump: (seq: number) => void
  /** Called with the first entry on the screen, whenever it is another one. */
  onSee: (seq: number) => void
  ref: Ref<TimelineHandle>
}

/** The entries in order of seq. Only visible ones are rendered, and only their pages are read. */
export function Timeline(props: TimelineProps) {
  const { log, opened_at, reading, current, matches, converted, onJump, onSee, ref } = props
  const { shown, opened, onOpen } = props
  const scroller = useRef<HTMLDivElement>(null)
  const is_at_end = useRef(false)
  const top_seq = useRef(0)
  /** The entry that was jumped to, until the reader scrolls: entries above it may still turn out taller. */
  const anchor = useRef<number>(undefined)
  /** Until then only the page scrolls, while its rows are measured. */
  const by_hand = useRef(false)
  const virtualizer = useVirtualizer({
    count: log.last_seq,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (isHidden(reading, index + 1, shown, opened) ? 0 : ENTRY_PX),
    overscan: ENTRIES_AHEAD,
    getItemKey: seqAt,
  })
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = keepsInPlace
  const items = virtualizer.getVirtualItems()
  const first = (items[0]?.index ?? 0) + 1
  const last = (items.at(-1)?.index ?? 0) + 1
  const { want, last_seq } = log
  /** The last seq that the reader has had on the screen, or could have. */
  const [seen, setSeen] = useState(opened_at)
  useEffect(() => want(first, last), [want, first, last])
  useImperativeHandle(ref, () => ({
    goTo: (seq) => {
      is_at_end.current = seq >= last_seq
      anchor.current = seq >= last_seq ? undefined : seq
      virtualizer.scrollToIndex(seq - 1, { align: seq >= last_seq ? 'end' : 'start' })
    },
  }))
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows come and go with these
  useEffect(() => virtualizer.measure(), [virtualizer, shown, opened])
  const height = virtualizer.getTotalSize()
  // A reader at the end stays at the end, and after a jump to an entry stays there.
  // biome-ignore lint/correctness/useExhaustiveDependencies: this follows the height
  useEffect(() => {
    if (is_at_end.current) virtualizer.scrollToIndex(last_seq - 1, { align: 'end' })
    else if (anchor.current !== undefined) virtualizer.scrollToIndex(anchor.current - 1, { align: 'start' })
  }, [last_seq, height, virtualizer])
  const release = () => {
    anchor.current = undefined
    by_hand.current = true
  }
  const notice = () => {
    const { scrollTop, scrollHeight, clientHeight } = scroller.current!
    const shows_end = scrollHeight - scrollTop - clientHeight < AT_END_PX
    if (shows_end) setSeen(last_seq)
    const top = virtualizer.getVirtualItemForOffset(scrollTop + READ_PX)
    if (top && top.index + 1 !== top_seq.current) {
      top_seq.current = top.index + 1
      onSee(top_seq.current)
    }
    if (!by_hand.current || anchor.current !== undefined) return
    is_at_end.current = shows_end && scrollHeight > clientHeight
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: entries that arrive where the reader looks are seen
  useEffect(notice, [last_seq, height])
  return (
    <div className="timeline-place">
      {last_seq > seen && (
        <button type="button" className="button is-primary unseen" onClick={() => onJump(last_seq)}>
          {countText(last_seq - seen)} new ↓
        </button>
      )}
      <div
        className="timeline"
        ref={scroller}
        onScroll={notice}
        onWheel={release}
        onTouchMove={release}
        onPointerDown={release}
        onKeyDown={release}
        tabIndex={0}
        role="region"
        aria-label="Timeline"
      >
        <div className="timeline-body" style={{ height }}>
          {items.map((line) => {
            const seq = line.index + 1
            const item = log.entry(seq)
            const read = reading.entries.get(seq)
            const is_asked = seq === current || matches.has(seq)
            const is_hidden = !is_asked && isHidden(reading, seq, shown, opened)
            const run = is_hidden || opened.has(seq) ? undefined : runOf(reading, seq, shown)
            return (
              <div
                key={line.key}
                className="timeline-line"
                data-index={line.index}
                ref={virtualizer.measureElement}
                style={{ transform: `translateY(${line.start}px)` }}
              >
                {is_hidden ? null : run?.first === seq && !is_asked ? (
                  <div className="entry is-folded">
                    <div className="spine">
                      <span className="seq mono">{countText(seq)}</span>
                    </div>
                    <div className="said">
                      <button type="button" className="button is-small is-quiet" onClick={() => onOpen(seq)}>
                        {run.text}
                      </button>
                    </div>
                  </div>
                ) : item && read ? (
                  <EntryRow
                    item={item}
                    // Where entries are left out, a pause would be read as the time since the row above.
                    before={shown === undefined ? momentBefore(reading, seq) : undefined}
                    read={read}
                    version={versionOf(read)}
                    is_current={seq === current}
                    is_match={matches.has(seq)}
                    is_new={seq > opened_at}
                    converted={item.kind === 'message' ? converted?.get(item.id) : undefined}
                    onJump={onJump}
                  />
                ) : (
                  <div className="entry is-unread">
                    <div className="spine">
                      <span className="seq mono">{seq}</span>
                    </div>
                    <div className="said faint">Loading…</div>
                  </div>
                )}
              </div>
            )
          })}
        </div>
      </div>
    </div>
  )
}
