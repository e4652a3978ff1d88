import type { TimelineItem } from '@annals/client'
import type { ToolCall } from '@annals/messages/session'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef } from 'react'
import { countText } from '../parts/timestamp.tsx'
import type { Reading } from './log_reading.ts'

type Line = { seq: number; title: string; number: number | undefined; state: string }

const LINE_PX = 28

/** An overview of the session: its numbered tool calls, and its events. */
export function Outline(props: {
  reading: Reading
  read: TimelineItem[]
  last_seq: number
  current: number | undefined
  onJump: (seq: number) => void
}) {
  const { reading, read, last_seq, current, onJump } = props
  const scroller = useRef<HTMLDivElement>(null)
  const lines = useMemo<Line[]>(() => {
    const events = [...reading.entries.values()]
      .filter(
        ({ kind, blocks }) => kind === 'event' && !blocks.some((block) => 'call' in block && block.call),
      )
      .map(({ seq, speaker }) => ({ seq, title: speaker, number: undefined, state: 'is-event' }))
    return [...reading.calls.map(lineOf), ...events].sort((a, b) => a.seq - b.seq)
  }, [reading])
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 10,
  })
  return (
    <nav className="outline" aria-label="Tool calls and events">
      <h2>
        Tool calls <span className="mono">{countText(reading.calls.length)}</span>
      </h2>
      {lines.length === 0 && (
        <p className="hint">
          This session has no tool calls and no events
          {read.length < last_seq ? ' in the entries loaded so far' : ''}.
        </p>
      )}
      <div className="outline-lines" ref={scroller}>
        <div style={{ height: virtualizer.getTotalSize(), position: 'relative' }}>
          {virtualizer.getVirtualItems().map(({ index, start, key }) => {
            const line = lines[index]!
            return (
              <button
                key={key}
                type="button"
                className={`outline-line ${line.state}`}
                aria-current={line.seq === current ? 'true' : undefined}
                style={{ transform: `translateY(${start}px)` }}
                onClick={() => onJump(line.seq)}
              >
                <span className="outline-number mono">{line.number ?? '·'}</span>
                <span className="outline-title mono">{line.title}</span>
                {line.state === 'is-failed' && <span className="outline-state">failed</span>}
                <span className="outline-seq mono">{countText(line.seq)}</span>
              </button>
            )
          })}
        </div>
      </div>
      {read.length < last_seq && (
        <p className="hint">
          Of the {countText(read.length)} entries read so far. Scroll on, or search, for the rest.
        </p>
      )}
    </nav>
  )
}

function lineOf({ seq, name, number, verdict }: ToolCall): Line {
  return { seq, title: name, number, state: verdict === 'failed' ? 'is-failed' : '' }
}
