import type { TimelineItem } from '@annals/client'
import { detailOf, type ToolCall } from '@annals/messages/session'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type Ref, useEffect, useImperativeHandle, useMemo, useRef, useState } from 'react'
import { countText, durationText } from '../parts/timestamp.tsx'
import { failedCalls, type Reading } from './log_reading.ts'
import { runOf, SOURCE } from './shown_entries.ts'

interface Line {
  seq: number
  title: string
  /** The command, path or the like that a call is about. */
  detail: string | undefined
  number: number | undefined
  state: string
  /** When it was, and until when it took, in ms. */
  from: number
  to: number
}

const LINE_PX = 28

export interface OutlineHandle {
  /** Shows where in the session the reader is. */
  follow: (seq: number) => void
}

/** An overview of the session: its numbered tool calls, and its events. It follows the reader's position. */
export function Outline(props: {
  reading: Reading
  read: TimelineItem[]
  last_seq: number
  current: number | undefined
  /** The calls of the whole session, where they are counted. */
  counted: { calls: number; failures: number } | undefined
  /** Whether the log shows failed calls alone. */
  only_failed: boolean
  onOnlyFailed: (is_on: boolean) => void
  onJump: (seq: number) => void
  ref: Ref<OutlineHandle>
}) {
  const { reading, read, last_seq, current, counted, only_failed, onOnlyFailed, onJump, ref } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [here, setHere] = useState(1)
  /** On a narrow screen, where it lies over the log. */
  const [is_open, setOpen] = useState(false)
  const moments = useMemo(() => momentsOf(read), [read])
  const lines = useMemo(() => inTime(linesOf(reading, only_failed), moments), [reading, only_failed, moments])
  const is_part = read.length < last_seq
  const { calls, failures } = (is_part && counted) || {
    calls: reading.calls.length,
    failures: failedCalls(reading).length,
  }
  const at_least = is_part && !counted ? '≥ ' : ''
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 10,
  })
  const place = nearest(lines, here)
  useImperativeHandle(ref, () => ({ follow: setHere }), [])
  useEffect(() => {
    if (place >= 0) virtualizer.scrollToIndex(place, { align: 'auto' })
  }, [place, virtualizer])
  const { began, ended } = moments
  return (
    <nav className={`outline ${is_open ? 'is-open' : ''}`} aria-label="Tool calls and events">
      <button
        type="button"
        className="button is-small outline-toggle"
        aria-expanded={is_open}
        onClick={() => setOpen(!is_open)}
      >
        Outline: {at_least}
        {countText(calls)} tool {calls === 1 ? 'call' : 'calls'}
        {failures > 0 && `, ${at_least}${countText(failures)} failed`}{' '}
        <span aria-hidden="true">{is_open ? '▴' : '▾'}</span>
      </button>
      <div className="outline-inside">
        <h2>
          Tool calls{' '}
          <span className="mono">
            {at_least}
            {countText(calls)}
          </span>
        </h2>
        {(failures > 0 || only_failed) && (
          <label className="check only-failed">
            <input
              type="checkbox"
              checked={only_failed}
              onChange={({ target }) => onOnlyFailed(target.checked)}
            />
            Failed only{' '}
            <span className="mono">
              {at_least}
              {countText(failures)}
            </span>
          </label>
        )}
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
                  className={`outline-line ${line.state} ${index === place ? 'is-here' : ''}`}
                  aria-current={line.seq === current ? 'true' : undefined}
                  style={{ transform: `translateY(${start}px)` }}
                  onClick={() => {
                    setOpen(false)
                    onJump(line.seq)
                  }}
                >
                  <span className="outline-number mono">{line.number ?? '·'}</span>
                  <span className="outline-title mono">
                    {line.title} {line.detail && <span className="faint">{line.detail}</span>}
                  </span>
                  {line.state === 'is-failed' && <span className="outline-state">failed</span>}
                  <span className="outline-seq mono">{countText(line.seq)}</span>
                  <Span line={line} began={began} ended={ended} />
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
      </div>
    </nav>
  )
}

/** When in the session the call was made, and how much of its time it took: together, a waterfall. */
function Span({ line, began, ended }: { line: Line; began: number; ended: number }) {
  if (!(ended > began) || line.to <= line.from) return null
  const share = (at: number) => `${Math.min(Math.max((100 * (at - began)) / (ended - began), 0), 100)}%`
  const style = { left: share(line.from), right: `calc(100% - ${share(line.to)})` }
  return <span className="outline-span" style={style} title={durationText(line.to - line.from)} />
}

function linesOf({ entries, calls }: Reading, only_failed: boolean): Line[] {
  const shown = calls.filter(({ verdict }) => !only_failed || verdict === 'failed').map(lineOf)
  if (only_failed) return shown
  const events = [...entries.values()]
    .filter(({ kind, blocks }) => kind === 'event' && !blocks.some((block) => 'call' in block && block.call))
    .map((read) => ({ read, run: runOf({ entries, calls }, read.seq) }))
    .filter(({ read, run }) => run === undefined || (run.first === read.seq && !run.is_noise))
    .map(
      ({
        read: {
          seq,
          speaker,
          blocks: [block],
        },
        run,
      }) => ({
        seq,
        title: run ? run.text : block?.kind === 'state' ? block.title : speaker.replace(SOURCE, ''),
        detail: undefined,
        number: undefined,
        state: 'is-event',
        from: 0,
        to: 0,
      }),
    )
  return [...shown, ...events]
}

interface Moments {
  /** When each entry happened, by seq, in ms. */
  of: Map<number, number>
  began: number
  ended: number
}

/** Of an entry of which nobody said when, it was at once after the one before it. */
function momentsOf(read: TimelineItem[]): Moments {
  const of = new Map<number, number>()
  let [began, ended] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  let at: number | undefined
  for (const { seq, occurred_at, created_at } of read) {
    if (occurred_at) at = Date.parse(occurred_at)
    of.set(seq, at ?? 0)
    began = Math.min(began, at ?? Date.parse(created_at))
    if (at !== undefined) ended = Math.max(ended, at)
  }
  if (at === undefined) ended = Date.parse(read.at(-1)?.created_at ?? '')
  return { of, began, ended }
}

/** What was stored late stands where it happened. */
function inTime(lines: Line[], { of }: Moments): Line[] {
  const at = ({ seq }: Line) => of.get(seq) ?? 0
  return lines.sort((a, b) => (at(a) === at(b) ? a.seq - b.seq : at(a) - at(b)))
}

/** The place of the last line in the log up to a seq, or -1. */
function nearest(lines: Line[], seq: number): number {
  return lines.reduce(
    (best, line, index) => (line.seq <= seq && line.seq >= (lines[best]?.seq ?? 0) ? index : best),
    -1,
  )
}

function lineOf({ seq, name, arguments: given, number, verdict, created_at, result }: ToolCall): Line {
  const from = Date.parse(created_at)
  const state = verdict === 'failed' ? 'is-failed' : ''
  return {
    seq,
    title: name,
    detail: detailOf(given),
    number,
    state,
    from,
    to: from + (result?.duration_ms ?? 0),
  }
}
