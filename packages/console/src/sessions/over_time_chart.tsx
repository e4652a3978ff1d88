import { type OutcomeWords, verdictOf } from '@annals/messages/session'
import { useMemo } from 'react'
import type uPlot from 'uplot'
import { useProject } from '../access/project_context.tsx'
import { Chart, type Series } from '../parts/chart.tsx'
import { countText } from '../parts/timestamp.tsx'
import { pathText } from './conditions.ts'
import { type OverTime, type SessionsView, useOverTime } from './sessions_query.ts'

const COUNTED_MAX = 20_000

const SERIES: Series[] = [
  { label: 'sessions', color: '--ink-accent', shape: 'columns' },
  { label: 'passed or failed', color: '--ink-passed', shape: 'columns' },
  { label: 'failed', color: '--ink-failed', shape: 'columns' },
]

/** When the sessions of the view began, and how they ended. `path`: the member of configs that tells. */
export function OverTimeChart({ view, path }: { view: SessionsView; path: string[] | undefined }) {
  const { outcomes } = useProject()
  const { data } = useOverTime(view, path)
  const counted = useMemo(() => countsOf(data, path, outcomes), [data, path, outcomes])
  // Keeps its space while loading, so that nothing below moves under the pointer.
  if (!data) return <div className="over-time" aria-hidden="true" />
  if (data.sessions === 0) return null
  const noun = data.sessions === 1 ? 'session' : 'sessions'
  const isCut = data.sessions >= COUNTED_MAX
  const { passed, failed } = counted
  const all = `${isCut ? 'the newest ' : ''}${countText(data.sessions)} ${noun}`
  // Sessions may say how they ended elsewhere, too.
  const said = path ? `, by ${pathText(path)}` : ''
  const split = `${countText(failed)} failed, ${countText(passed)} passed${said}`
  return (
    <figure className="over-time">
      <figcaption>
        <b>{countText(data.sessions)}</b> {isCut ? `newest ${noun}` : noun}, by {widthText(data.seconds)}
        {passed + failed > 0 && (
          <>
            : <span className="is-failed">{countText(failed)} failed</span>,{' '}
            <span className="is-passed">{countText(passed)} passed</span>
            {said}
          </>
        )}
      </figcaption>
      <Chart
        data={counted.columns}
        series={SERIES}
        height={72}
        label={`Sessions over time: ${all}${passed + failed > 0 ? `, ${split}` : ''}`}
      />
    </figure>
  )
}

/** The chart's columns: each outcome is drawn over what is not of it. */
function countsOf(data: OverTime | undefined, path: string[] | undefined, words: OutcomeWords | undefined) {
  let [passed, failed] = [0, 0]
  const columns: uPlot.AlignedData = [[], [], [], []]
  if (!data || data.columns.length === 0) return { columns, passed, failed }
  const by_start = new Map(data.columns.map((column) => [Date.parse(column.start) / 1000, column]))
  const starts = [...by_start.keys()]
  const rows: Array<[number, number, number, number]> = []
  // One empty column on either side keeps a single one from filling the whole width.
  for (let at = starts[0]! - data.seconds; at <= starts.at(-1)! + data.seconds; at += data.seconds) {
    const column = by_start.get(at)
    const count = { failed: 0, passed: 0 }
    for (const [value, sessions] of Object.entries(column?.by ?? {})) {
      const verdict = path && verdictOf(path, value, words)
      if (verdict) count[verdict] += sessions
    }
    passed += count.passed
    failed += count.failed
    rows.push([at, column?.sessions ?? 0, count.passed + count.failed, count.failed])
  }
  const drawn = [0, 1, 2, 3].map((index) => rows.map((row) => row[index]!)) as unknown as uPlot.AlignedData
  return { columns: drawn, passed, failed }
}

function widthText(seconds: number): string {
  const units: Array<[number, string]> = [
    [31_536_000, 'year'],
    [2_592_000, 'month'],
    [604_800, 'week'],
    [86_400, 'day'],
    [3_600, 'hour'],
    [60, 'minute'],
    [1, 'second'],
  ]
  const [size, name] = units.find(([unit]) => seconds >= unit)!
  return seconds === size ? name : `${seconds / size} ${name}s`
}
