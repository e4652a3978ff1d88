import type { Tool, ToolPage } from '@annals/client'
import { useMemo, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countOfRead, countText, durationText } from '../parts/timestamp.tsx'
import { OverTimeChart } from '../sessions/over_time_chart.tsx'
import { outcomePathOf, pathOf } from '../sessions/sessions_page.tsx'
import type { SessionsView } from '../sessions/sessions_query.ts'
import { isLimited, readTimeRange, type TimeRange, TimeRangeField } from '../sessions/time_range.tsx'
import { FailedCalls } from './failed_calls.tsx'
import { type AgentFigures, byAgent, keysOf, quantileOf } from './run_figures.ts'
import { useRuns } from './runs_query.ts'
import { useTools, whatIsLeft } from './tools_query.ts'

const TOOLS_SHOWN = 8

/** What agents and their tools did, at any time or in a limited one. */
export function RunsSection() {
  const { query } = useAddress()
  const range = useMemo<TimeRange>(() => readTimeRange(query), [query])
  const key = query.get('by') ?? 'agent'
  const chosen = query.get('tool')
  const show = (change: Record<string, string | undefined>) =>
    navigate(withQuery('/activity', { ...Object.fromEntries(query), ...change }))
  const view = useMemo<SessionsView>(
    () => ({ user: undefined, filter: {}, oldest_first: false, range }),
    [range],
  )
  const { runs, is_cut, isPending, isError, error, refetch, isFetching } = useRuns(view)
  const { outcomes } = useProject()
  const agents = useMemo(() => byAgent(runs, key, outcomes), [runs, key, outcomes])
  const path = useMemo(
    () =>
      outcomePathOf(
        runs.map(({ session }) => session),
        outcomes,
      ),
    [runs, outcomes],
  )
  return (
    <section className="runs" aria-label="Agents and tools">
      <div className="page-head">
        <h2>Agents and tools</h2>
        <TimeRangeField range={range} onChange={({ last, from, to }) => show({ last, from, to })} />
      </div>
      <Tools range={range} chosen={chosen ?? undefined} onChoose={(name) => show({ tool: name })} />
      <OverTimeChart view={view} path={path} />
      {isPending ? (
        <Loading what="what agents did" />
      ) : isError && runs.length === 0 ? (
        <Failure error={error} onRetry={() => void refetch()} />
      ) : runs.length === 0 && !isLimited(range) ? (
        <p className="faint">No sessions yet.</p>
      ) : runs.length === 0 ? (
        <Empty title="No session was created in this time">
          <button
            type="button"
            className="button"
            onClick={() => show({ last: undefined, from: undefined, to: undefined })}
          >
            Show any time
          </button>
        </Empty>
      ) : (
        <>
          <p className="hint" role="status">
            {isFetching ? 'Reading: ' : 'Of '}
            {is_cut && 'the newest '}
            {countText(runs.length)} {runs.length === 1 ? 'session' : 'sessions'}
            {isFetching ? ' so far' : ''}
          </p>
          <Agents agents={agents} keys={keysOf(runs)} by={key} onBy={(by) => show({ by })} />
        </>
      )}
    </section>
  )
}

function Tools(props: { range: TimeRange; chosen: string | undefined; onChoose: (name: string) => void }) {
  const { range, chosen, onChoose } = props
  const { data, isError, error, refetch } = useTools(range)
  if (isError && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading what="tools" />
  const left = whatIsLeft(data)
  const tool =
    data.items.find(({ name }) => name === chosen) ?? data.items.find(({ failures }) => failures > 0)
  return (
    <>
      <p className="hint" role="status">
        {left ?? countedText(data.items.length === 0, isLimited(range))}
        {data.items.length > 0 &&
          data.items.every(({ p50_ms }) => p50_ms === null) &&
          '. How long they took is not known: their sessions do not say when they ended.'}
      </p>
      {data.items.length > 0 && <ToolTable {...{ data, onChoose }} chosen={tool?.name} />}
      {tool && tool.failures > 0 && <FailedCalls key={tool.name} {...{ tool, range }} />}
    </>
  )
}

function countedText(is_empty: boolean, is_limited: boolean): string {
  if (is_empty) return is_limited ? 'No tool was called in this time.' : 'No tool was called yet.'
  return is_limited ? 'All calls in this time' : 'All calls'
}

function ToolTable(props: { data: ToolPage; chosen: string | undefined; onChoose: (name: string) => void }) {
  const { data, chosen, onChoose } = props
  const [is_whole, setWhole] = useState(false)
  const { items, has_more, complete } = data
  const shown = is_whole ? items : items.slice(0, TOOLS_SHOWN)
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
          {shown.map((tool) => (
            <ToolRow
              key={tool.name}
              {...{ tool, onChoose }}
              least={complete ? '' : '≥ '}
              is_chosen={tool.name === chosen}
            />
          ))}
        </tbody>
      </table>
      {items.length > shown.length && (
        <button type="button" className="button is-small is-quiet" onClick={() => setWhole(true)}>
          All {countOfRead(items.length, has_more)} tools
        </button>
      )}
    </div>
  )
}

function ToolRow(props: { tool: Tool; least: string; is_chosen: boolean; onChoose: (name: string) => void }) {
  const { least, is_chosen, onChoose } = props
  const { name, calls, failures, sessions, p50_ms, p95_ms } = props.tool
  const count = (value: number) => `${least}${countText(value)}`
  return (
    <tr aria-current={is_chosen ? 'true' : undefined}>
      <th scope="row">
        {failures > 0 ? (
          <button type="button" className="plain mono" onClick={() => onChoose(name)}>
            {name}
          </button>
        ) : (
          <span className="mono">{name}</span>
        )}
      </th>
      <td className={failures > 0 ? 'is-bad' : ''}>
        {failures > 0 ? count(failures) : least === '' ? '–' : '…'}
      </td>
      <td>{rateText(failures, calls)}</td>
      <td>{count(calls)}</td>
      <td>{count(sessions)}</td>
      <td>{timeText(p50_ms)}</td>
      <td>{timeText(p95_ms)}</td>
    </tr>
  )
}

function Agents(props: { agents: AgentFigures[]; keys: string[]; by: string; onBy: (key: string) => void }) {
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
            {agents.map(
              ({ name, sessions, failed, known, tokens, calls, failures, durations_ms, is_whole }) => (
                <tr key={name}>
                  <th scope="row">
                    <Agent name={name} by={by} />
                  </th>
                  <td className={failed > 0 ? 'is-bad' : ''}>{failed > 0 ? countText(failed) : '–'}</td>
                  <td>{rateText(failed, known)}</td>
                  <td>{countText(sessions)}</td>
                  <td>{countText(tokens)}</td>
                  <td>{leastText(calls, is_whole)}</td>
                  <td>{failures > 0 ? leastText(failures, is_whole) : is_whole ? '–' : '…'}</td>
                  <Durations values={durations_ms} />
                </tr>
              ),
            )}
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

function timeText(ms: number | null): string {
  return ms === null ? '–' : durationText(ms)
}

function leastText(count: number, is_whole: boolean): string {
  return count === 0 && !is_whole ? '…' : `${is_whole ? '' : '≥ '}${countText(count)}`
}

function rateText(part: number, all: number): string {
  return all === 0 ? '–' : `${Math.round((100 * part) / all)} %`
}
