import { useMemo } from 'react'
import type uPlot from 'uplot'
import { Chart, type Series } from '../parts/chart.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import type { Moment } from './metrics.ts'
import { useMoments } from './metrics_query.ts'
import { RunsSection } from './runs_section.tsx'

interface Panel {
  title: string
  now: (moment: Moment) => string
  lines: Array<Series & { read: (moment: Moment) => number | undefined }>
  format?: (value: number) => string
}

const perSecond = (value: number) => (value >= 100 ? countText(Math.round(value)) : value.toFixed(1))
const millis = (value: number | undefined) =>
  value === undefined ? '–' : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
const whole = (value: number) => countText(Math.round(value))
const axisMillis = (value: number) => `${value} ms`
const megabytes = (bytes: number) => `${Math.round(bytes / 1_048_576)} MB`

const PANELS: Panel[] = [
  {
    title: 'Appends per second',
    now: ({ appends_per_s }) => perSecond(appends_per_s),
    lines: [
      { label: 'appends', color: '--ink-accent', shape: 'area', read: ({ appends_per_s }) => appends_per_s },
    ],
  },
  {
    title: 'Append latency, p50 and p99',
    now: ({ append_p50, append_p99 }) => `${millis(append_p50)} / ${millis(append_p99)}`,
    lines: [
      { label: 'p50', color: '--ink-accent', shape: 'line', read: ({ append_p50 }) => append_p50 },
      { label: 'p99', color: '--ink-gold', shape: 'line', read: ({ append_p99 }) => append_p99 },
    ],
    format: axisMillis,
  },
  {
    title: 'Appends that wait for a commit',
    now: ({ queue }) => whole(queue),
    lines: [{ label: 'queue', color: '--ink-accent', shape: 'area', read: ({ queue }) => queue }],
  },
  {
    title: 'Requests per second',
    now: ({ requests_per_s }) => perSecond(requests_per_s),
    lines: [
      {
        label: 'requests',
        color: '--ink-accent',
        shape: 'area',
        read: ({ requests_per_s }) => requests_per_s,
      },
    ],
  },
  {
    title: 'Errors of the service per second',
    now: ({ errors_per_s }) => perSecond(errors_per_s),
    lines: [
      { label: 'errors', color: '--ink-failed', shape: 'area', read: ({ errors_per_s }) => errors_per_s },
    ],
  },
  {
    title: 'Processor',
    now: ({ cpu_share }) => `${Math.round(cpu_share * 100)} %`,
    lines: [
      { label: 'processor', color: '--ink-accent', shape: 'area', read: ({ cpu_share }) => cpu_share * 100 },
    ],
    format: (value) => `${value} %`,
  },
]

/** What agents did lately, from the database, and what this server does now, from its own metrics. */
export function ActivityPage() {
  usePageTitle('Activity')
  return (
    <div className="page">
      <h1>Activity</h1>
      <RunsSection />
      <ServerSection />
    </div>
  )
}

function ServerSection() {
  const metrics = useMoments()
  const moments = metrics.data ?? []
  const now = moments.at(-1)
  if (metrics.isError && !now) return <Failure error={metrics.error} onRetry={() => void metrics.refetch()} />
  return (
    <section className="runs" aria-label="This server">
      <div className="page-head">
        <h2>This server</h2>
        <p className="hint">
          Every two seconds since the page was opened. For longer, let Prometheus read <code>/metrics</code>.
        </p>
      </div>
      {metrics.isError && (
        <p className="failure-line" role="alert">
          The service does not answer at the moment; trying again.
        </p>
      )}
      {now === undefined ? (
        <Loading what="the metrics" />
      ) : (
        <>
          <div className="panels">
            {PANELS.map((panel) => (
              <PanelChart key={panel.title} panel={panel} moments={moments} now={now} />
            ))}
          </div>
          <dl className="facts is-wide">
            <NowFact name="live tails" value={whole(now.tails)} />
            <NowFact name="database connections" value={whole(now.connections)} />
            <NowFact name="requests waiting for one" value={whole(now.waiting)} />
            <NowFact name="memory" value={megabytes(now.memory_bytes)} />
          </dl>
        </>
      )}
    </section>
  )
}

function PanelChart({ panel, moments, now }: { panel: Panel; moments: Moment[]; now: Moment }) {
  const data = useMemo(
    () =>
      [
        moments.map(({ at }) => at),
        ...panel.lines.map(({ read }) => moments.map((moment) => read(moment) ?? null)),
      ] as uPlot.AlignedData,
    [moments, panel],
  )
  return (
    <section className="panel">
      <h3>{panel.title}</h3>
      <p className="panel-now mono">{panel.now(now)}</p>
      <Chart
        data={data}
        series={panel.lines}
        height={130}
        label={`${panel.title}: ${panel.now(now)}`}
        {...(panel.format && { format: panel.format })}
      />
    </section>
  )
}

function NowFact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="mono">{value}</dd>
    </div>
  )
}
