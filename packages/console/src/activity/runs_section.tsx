import { useMemo, useState } from 'react'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countText, durationText } from '../parts/timestamp.tsx'
import { OverTimeChart } from '../sessions/over_time_chart.tsx'
import { outcomePathOf, pathOf } from '../sessions/sessions_page.tsx'
import type { SessionsView } from '../sessions/sessions_query.ts'
import { isLimited, readTimeRange, type TimeRange, TimeRangeField } from '../sessions/time_range.tsx'
import { FailedCalls } from './failed_calls.tsx'
import { type AgentFigures, byAgent, byTool, keysOf, quantileOf, type ToolOverview } from './run_figures.ts'
import { useRuns } from './runs_query.ts'

const TOOLS_SHOWN = 8

/** What agents and their tools did, from what is stored: the last day, or another time. */
export function RunsSection() {
  const { query } = useAddress()
  const range = useMemo<TimeRange>(() => {
    const asked = readTimeRange(query)
    return isLimited(asked) || query.get('time') === 'any' ? asked : { last: '24h' }
  }, [query])
  const key = query.get('by') ?? 'agent'
  const chosen = query.get('tool')
  const show = (change: Record<string, string | undefined>) =>
    navigate(withQuery('/activity', { ...Object.fromEntries(query), ...change }))
  const view = useMemo<SessionsView>(
    () => ({ user: undefined, filter: {}, oldest_first: false, range }),
    [range],
  )
  const { runs, is_cut, isPending, isError, error, refetch, isFetching } = useRuns(view)
  const tools = useMemo(() => byTool(runs), [runs])
  const agents = useMemo(() => byAgent(runs, key), [runs, key])
  const path = useMemo(() => outcomePathOf(runs.map(({ session }) => session)), [runs])
  const tool = tools.find(({ name }) => name === chosen) ?? tools.find(({ failures }) => failures > 0)
  return (
    <section className="runs" aria-label="Agents and tools">
      <div className="page-head">
        <h2>Agents and tools</h2>
        <TimeRangeField
          range={range}
          onChange={({ last, from, to }) =>
            show({ last, from, to, time: (last ?? from ?? to) ? undefined : 'any' })
          }
        />
      </div>
      <OverTimeChart view={view} path={path} />
      {isPending ? (
        <Loading what="what agents did" />
      ) : isError && runs.length === 0 ? (
        <Failure error={error} onRetry={() => void refetch()} />
      ) : runs.length === 0 ? (
        <Empty title="No session was created in this time">
          <button type="button" className="button" onClick={() => show({ last: undefined, time: 'any' })}>
            Show any time
          </button>
        </Empty>
      ) : (
        <>
          <p className="hint" role="status">
            {isFetching ? 'Reading: ' : 'Of '}
            {is_cut && 'the newest '}
            {countText(runs.length)} sessions{isFetching ? ' so far' : ''}
            {runs.some(({ figures }) => figures?.is_whole === false) &&
              '; of long ones, the first 200 entries or 128 KB'}
          </p>
          <Tools tools={tools} chosen={tool?.name} onChoose={(name) => show({ tool: name })} />
          {tool && tool.failures > 0 && <FailedCalls key={tool.name} tool={tool} />}
          <Agents {...{ agents, path }} keys={keysOf(runs)} by={key} onBy={(by) => show({ by })} />
        </>
      )}
    </section>
  )
}

function Tools(props: {
  tools: ToolOverview[]
  chosen: string | undefined
  onChoose: (name: string) => void
}) {
  const { tools, chosen, onChoose } = props
  const [is_whole, setWhole] = useState(false)
  const shown = is_whole ? tools : tools.slice(0, TOOLS_SHOWN)
  if (tools.length === 0) return <p className="hint">These sessions have no tool calls.</p>
  return (
    <div className="figures" role="region" aria-label="Tools" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">Failures</th>
            <th scope="col">Failure rate</th>
            <th scope="col">Calls</th>
            <th scope="col">Sessions</th>
            <th scope="col">p50</th>
            <th scope="col">p95</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ name, calls, failures, sessions, durations_ms }) => (
            <tr key={name} aria-current={name === chosen ? 'true' : undefined}>
              <th scope="row">
                {failures > 0 ? (
                  <button type="button" className="plain mono" onClick={() => onChoose(name)}>
                    {name}
                  </button>
                ) : (
                  <span className="mono">{name}</span>
                )}
              </th>
              <td className={failures > 0 ? 'is-bad' : ''}>{failures > 0 ? countText(failures) : '–'}</td>
              <td>{rateText(failures, calls)}</td>
              <td>{countText(calls)}</td>
              <td>{countText(sessions)}</td>
              <Durations values={durations_ms} />
            </tr>
          ))}
        </tbody>
      </table>
      {tools.length > shown.length && (
        <button type="button" className="button is-small is-quiet" onClick={() => setWhole(true)}>
          All {countText(tools.length)} tools
        </button>
      )}
    </div>
  )
}

function Agents(props: {
  agents: AgentFigures[]
  keys: string[]
  by: string
  path: string[] | undefined
  onBy: (key: string) => void
}) {
  const { agents, keys, by, onBy } = props
  return (
    <>
      <label className="by">
        Sessions by{' '}
        <select value={by} onChange={({ target }) => onBy(target.value)}>
          {(keys.includes(by) ? keys : [...keys, by]).map((key) => (
            <option key={key}>{key}</option>
          ))}
        </select>
      </label>
      <div className="figures" role="region" aria-label="Agents" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{by}</th>
              <th scope="col">Failed</th>
              <th scope="col">Failure rate</th>
              <th scope="col">Sessions</th>
              <th scope="col">Tokens</th>
              <th scope="col">Tool calls</th>
              <th scope="col">Failed calls</th>
              <th scope="col">p50</th>
              <th scope="col">p95</th>
            </tr>
          </thead>
          <tbody>
            {agents.map(({ name, sessions, failed, known, tokens, calls, failures, durations_ms }) => (
              <tr key={name}>
                <th scope="row">
                  <Agent name={name} by={by} />
                </th>
                <td className={failed > 0 ? 'is-bad' : ''}>{failed > 0 ? countText(failed) : '–'}</td>
                <td>{rateText(failed, known)}</td>
                <td>{countText(sessions)}</td>
                <td>{countText(tokens)}</td>
                <td>{countText(calls)}</td>
                <td>{failures > 0 ? countText(failures) : '–'}</td>
                <Durations values={durations_ms} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Agent({ name, by }: { name: string; by: string }) {
  return name === `no ${by}` ? (
    <span className="faint">{name}</span>
  ) : (
    <Link to={pathOf({ filter: { [by]: name } })}>{name}</Link>
  )
}

function Durations({ values }: { values: number[] }) {
  return [0.5, 0.95].map((share) => {
    const value = quantileOf(values, share)
    return <td key={share}>{value === undefined ? '–' : durationText(value)}</td>
  })
}

function rateText(part: number, all: number): string {
  return all === 0 ? '–' : `${Math.round((100 * part) / all)} %`
}
