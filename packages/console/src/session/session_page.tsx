import type { Session } from '@annals/client'
import { sessionTitle } from '@annals/messages/session'
import { useQuery } from '@tanstack/react-query'
import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { copy } from '../parts/clipboard.ts'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { SessionRun } from '../runs/session_run.tsx'
import { FinderContext } from '../search/finder.ts'
import { useFinder } from '../search/mark_found.ts'
import { type SessionFigures, useFigures } from '../sessions/facts_query.ts'
import { useKeys } from '../shell/shortcuts.ts'
import { useCallNumbers } from './call_numbers.ts'
import { FORMATS, useConverted } from './converted_messages.ts'
import { jsonOf } from './entry_actions.tsx'
import { type Log, useLastSeq, useLog } from './log_query.ts'
import { failedCalls, longPauses, type Reading, shownAt, useReading } from './log_reading.ts'
import { useLogSearch } from './log_search.ts'
import { Outline, type OutlineHandle } from './outline.tsx'
import { SessionHead } from './session_head.tsx'
import { SessionToolbar } from './session_toolbar.tsx'
import { isHidden, isKind, SHOWN, type Shown, shownOf } from './shown_entries.ts'
import { Timeline, type TimelineHandle } from './timeline.tsx'

/** One session: its log in order, and live. */
export function SessionPage({ id }: { id: string }) {
  const { annals, project_id } = useProject()
  const session = useQuery({
    queryKey: [project_id, 'session', id],
    queryFn: ({ signal }) => annals.sessions.get(id, { signal }),
  })
  const last_seq = useLastSeq(id)
  const failed = [session, last_seq].find(({ isError }) => isError)
  if (failed) return <Failure is_page error={failed.error} onRetry={() => void failed.refetch()} />
  if (session.data === undefined || last_seq.data === undefined) return <Loading what="the session" />
  return <OpenSession session={session.data} opened_at={last_seq.data} />
}

function OpenSession({ session, opened_at }: { session: Session; opened_at: number }) {
  const { id } = session
  const { query } = useAddress()
  const current = seqOf(query.get('seq'))
  const text = query.get('q') ?? ''
  const format = FORMATS.find((one) => one === query.get('format'))
  const shown = shownOf(query.get('show'))
  const [sends, setSends] = useState(false)
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set())
  const log = useLog(id, opened_at)
  const reading = useReading(log.read, useCallNumbers(id, log))
  const counted = useCounted(id, opened_at, log)
  const { calls } = reading
  const page = useRef<HTMLDivElement>(null)
  const finder = useFinder(text, page, '.said')
  const search = useLogSearch(id, opened_at, log, finder)
  const title = sessionTitle(session.configs, reading.entries.values())
  usePageTitle(title ?? id, 'Sessions')
  const matches = useMemo(() => new Set(search.found), [search.found])
  const converted = useConverted(id, format, log.last_seq)
  const timeline = useRef<TimelineHandle>(null)
  const outline = useRef<OutlineHandle>(null)
  const see = useCallback((seq: number) => outline.current?.follow(seq), [])

  const show = (change: { seq?: number; q?: string; format?: string | undefined; show?: Shown }) => {
    const next = { seq: current, q: text, format, show: shown, ...change }
    navigate(
      withQuery(`/sessions/${id}`, { ...next, seq: next.seq === undefined ? undefined : String(next.seq) }),
      { replace: true },
    )
  }
  const jump = (seq: number) => {
    const target = Math.min(Math.max(seq, 1), log.last_seq)
    show({ seq: target })
    timeline.current?.goTo(target)
  }
  useArrival(timeline, current)
  const step = (seqs: number[], direction: 1 | -1) => {
    const here = current ?? 0
    // What is shown at another entry is found there.
    const places = [...new Set(seqs.map((seq) => shownAt(reading, seq)))].sort((a, b) => a - b)
    const next = direction > 0 ? places.find((seq) => seq > here) : places.findLast((seq) => seq < here)
    if (next !== undefined) jump(next)
  }
  /** The nearest entry that has a row. */
  const stepOne = (direction: 1 | -1) => {
    let seq = (current ?? (direction > 0 ? 0 : 2)) + direction
    const hasRow = () => shownAt(reading, seq) === seq && !isHidden(reading, seq, shown, opened)
    while (seq > 1 && seq < log.last_seq && !hasRow()) seq += direction
    jump(seq)
  }
  const here = current === undefined ? undefined : log.entry(current)
  useKeys({
    j: () => stepOne(1),
    k: () => stepOne(-1),
    t: () => step(seqsOf(calls), 1),
    T: () => step(seqsOf(calls), -1),
    f: () => step(failedCalls(reading), 1),
    F: () => step(failedCalls(reading), -1),
    p: () => step(longPauses(reading), 1),
    P: () => step(longPauses(reading), -1),
    n: () => step(search.found, 1),
    N: () => step(search.found, -1),
    Home: () => jump(1),
    End: () => jump(log.last_seq),
    c: () => here && void copy(`entry ${here.seq} as JSON`, jsonOf(here)),
  })
  return (
    <div className="page is-session" ref={page}>
      <SessionHead {...{ session, log, title, counted, sends }} onSend={setSends} />
      <SessionRun session={session} opens={sends} onOpen={setSends} />
      <SessionToolbar
        {...{ session, log, calls, counted, search, text, format, current, shown }}
        is_converting={converted.isFetching}
        onJump={jump}
        onSearch={(q) => show({ q })}
        onStep={(direction) => step(search.found, direction)}
        onFormat={(next) => show({ format: next })}
        onShow={(next) => show({ show: next })}
      />
      {log.failure && log.read.length > 0 && (
        <p className="failure-line" role="alert">
          New entries do not appear here: {log.failure.message}
        </p>
      )}
      {hasNone(shown, log, reading) && (
        <p className="hint" role="status">
          No entry of this session is shown: it has no {SHOWN[shown!].toLowerCase()}.
        </p>
      )}
      {log.failure && log.read.length === 0 ? (
        <Failure error={log.failure} />
      ) : log.last_seq === 0 ? (
        <Empty title="No entries yet">
          <p>{log.is_live ? 'New entries appear here as they are stored.' : 'Connecting…'}</p>
        </Empty>
      ) : (
        <div className="session-body">
          <FinderContext value={finder}>
            <Timeline
              ref={timeline}
              {...{ log, opened_at, reading, current, matches, shown, opened }}
              onOpen={(first) => setOpened(new Set([...opened, first]))}
              converted={format && converted.data}
              onJump={jump}
              onSee={see}
            />
          </FinderContext>
          <Outline
            ref={outline}
            reading={reading}
            read={log.read}
            last_seq={log.last_seq}
            current={current}
            counted={counted}
            only_failed={shown === 'failed'}
            onOnlyFailed={(is_on) => show({ show: is_on ? 'failed' : undefined })}
            onJump={jump}
          />
        </div>
      )}
    </div>
  )
}

/** Figures of the whole session, where more is stored than is loaded. */
function useCounted(id: string, opened_at: number, { read, last_seq }: Log): SessionFigures | undefined {
  const is_part = last_seq === opened_at && read.length < last_seq
  const listed = useMemo(() => ({ id, updated_at: String(opened_at) }), [id, opened_at])
  const figures = useFigures(
    listed,
    useMemo(() => (is_part ? [listed] : []), [is_part, listed]),
  )
  return figures?.is_whole ? figures : undefined
}

/** Whether a whole log has nothing of the kind that is shown. */
function hasNone(shown: Shown, log: Log, { entries }: Reading): boolean {
  if (shown === undefined || entries.size === 0 || entries.size < log.last_seq) return false
  return ![...entries.values()].some((read) => isKind(read, shown))
}

/** A link to an entry jumps there once; after that, the reader scrolls. */
function useArrival(timeline: RefObject<TimelineHandle | null>, current: number | undefined): void {
  const led = useRef(false)
  useEffect(() => {
    if (led.current || !timeline.current) return
    led.current = true
    if (current !== undefined) timeline.current.goTo(current)
  })
}

function seqsOf(calls: ReadonlyArray<{ seq: number }>): number[] {
  return calls.map(({ seq }) => seq)
}

function seqOf(text: string | null): number | undefined {
  return text !== null && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined
}
