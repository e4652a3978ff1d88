import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { axisText } from './timestamp.tsx'

/** One line or row of columns of a chart. `color` is a variable of the theme. */
export interface Series {
  label: string
  color: string
  shape: 'columns' | 'line' | 'area'
}

const MINUTE_S = 60

/** Seconds between the marks of the axis: whole ones, then what a clock and a calendar have. */
const INCREMENTS = [
  1, 2, 5, 10, 15, 30, 60, 300, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000,
  31_536_000,
]

/** A chart over time, of full width. Its content is also given in words; this only draws it. */
export function Chart(props: {
  data: uPlot.AlignedData
  series: Series[]
  height: number
  label: string
  format?: (value: number) => string
}) {
  const { data, series, height, label, format = String } = props
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const shown = useRef(data)
  shown.current = data

  useEffect(() => {
    const element = place.current!
    const draw = () => {
      plot.current?.destroy()
      plot.current = new uPlot(optionsOf(element, series, height, format), shown.current, element)
    }
    draw()
    const resizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }))
    resizes.observe(element)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    addEventListener('annals:theme', draw)
    return () => {
      resizes.disconnect()
      scheme.removeEventListener('change', draw)
      removeEventListener('annals:theme', draw)
      plot.current?.destroy()
    }
  }, [series, height, format])
  useEffect(() => plot.current?.setData(data), [data])
  return <div className="chart" ref={place} role="img" aria-label={label} />
}

function optionsOf(
  element: HTMLElement,
  series: Series[],
  height: number,
  format: (value: number) => string,
): uPlot.Options {
  const style = getComputedStyle(element)
  const colorOf = (name: string) => resolved(element, `var(${name})`)
  const font = `11px ${style.fontFamily}`
  const counts = series.every(({ shape }) => shape === 'columns')
  const axis = {
    stroke: colorOf('--ink-soft'),
    font,
    ticks: { show: false },
    grid: { stroke: colorOf('--rule'), width: 1 },
  }
  return {
    width: element.clientWidth,
    height,
    padding: [6, 26, 0, 0],
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: false, y: false } },
    scales: {
      // For a single moment, uPlot would show years.
      x: { range: ({ data: [times] }, min, max) => timesBetween(min, times.length === 1 ? min : max) },
      y: { range: (_plot, _min, max) => [0, Math.max(max, 1) * 1.1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 20,
        space: 64,
        gap: 4,
        incrs: INCREMENTS,
        values: (_plot, splits, _index, _space, seconds) => splits.map((at) => axisText(at * 1000, seconds)),
      },
      {
        ...axis,
        size: 52,
        gap: 6,
        splits: (_plot, _index, _min, max) => {
          const half = niceHalf(max)
          // There is no half session.
          return counts && half < 1 ? [0, 1] : [0, half, half * 2]
        },
        values: (_plot, splits) => splits.map(format),
      },
    ],
    series: [
      {},
      ...(series.map(
        ({ label, color, shape }): uPlot.Series => ({
          label,
          stroke: colorOf(color),
          width: shape === 'columns' ? 0 : 1.5,
          points: { show: false },
          ...(shape !== 'line' && { fill: shape === 'area' ? faintly(colorOf(color)) : colorOf(color) }),
          ...(shape === 'columns' && { paths: uPlot.paths.bars!({ size: [0.78, 26], align: 1 }) }),
        }),
      ) as uPlot.Series[]),
    ],
  }
}

/** The range of the axis, in seconds: without data the last minute, for one moment the minute around it. */
function timesBetween(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [Date.now() / 1000 - MINUTE_S, Date.now() / 1000]
  return min === max ? [min - MINUTE_S / 2, max + MINUTE_S / 2] : [min, max]
}

/** The colour, translucent. */
function faintly(color: string): string {
  return color.replace(/^rgb\((.*)\)$/, 'rgb($1, 0.16)')
}

/** About half of the axis, rounded to a readable number. */
function niceHalf(max: number): number {
  const half = max / 2.2
  const power = 10 ** Math.floor(Math.log10(half || 1))
  const step = [5, 4, 3, 2, 1].find((factor) => factor * power <= half) ?? 1
  return step * power
}

/** A theme colour for a canvas: light-dark() only works in style sheets. */
function resolved(element: HTMLElement, color: string): string {
  const probe = document.createElement('span')
  probe.style.color = color
  element.append(probe)
  const text = getComputedStyle(probe).color
  probe.remove()
  return text
}
