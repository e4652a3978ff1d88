import { useMemo } from 'react'
import type uPlot from 'uplot'
import { Chart, type Series } from '../parts/chart.tsx'
import { countText } from '../parts/timestamp.tsx'
import { type SessionsView, useOverTime } from './sessions_query.ts'

const COUNTED_MAX = 20_000

/** When the sessions of the view were created. */
export function OverTimeChart({ view }: { view: SessionsView }) {
  const { data } = useOverTime(view)
  const columns = useMemo<uPlot.AlignedData>(() => {
    if (!data || data.columns.length === 0) return [[], []]
    const counts = new Map(data.columns.map(({ start, sessions }) => [Date.parse(start) / 1000, sessions]))
    const starts = [...counts.keys()]
    const all: number[] = []
    // One empty column on either side keeps a single one from filling the whole width.
    for (let at = starts[0]! - data.seconds; at <= starts.at(-1)! + data.seconds; at += data.seconds)
      all.push(at)
    return [all, all.map((at) => counts.get(at) ?? 0)]
  }, [data])
  const series = useMemo<Series[]>(() => [{ label: 'sessions', color: '--ink-accent', shape: 'columns' }], [])
  // Keeps its space while loading, so that nothing below moves under the pointer.
  if (!data) return <div className="over-time" aria-hidden="true" />
  if (data.sessions === 0) return null
  const noun = data.sessions === 1 ? 'session' : 'sessions'
  const isCut = data.sessions >= COUNTED_MAX
  const counted = `${isCut ? 'the newest ' : ''}${countText(data.sessions)} ${noun}`
  return (
    <figure className="over-time">
      <figcaption>
        <b className="mono">{countText(data.sessions)}</b> {isCut ? `newest ${noun}` : noun}, by{' '}
        {widthText(data.seconds)}
      </figcaption>
      <Chart data={columns} series={series} height={72} label={`Sessions over time: ${counted}`} />
    </figure>
  )
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
