import { type Ref, useMemo, useRef } from 'react'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { countOfRead, countText, Timestamp } from '../parts/timestamp.tsx'
import { useFacts } from '../sessions/facts_query.ts'
import { RequestsQueue } from './requests_queue.tsx'
import { RUN_STATES, type RunState, useRunsIn } from './runs_query.ts'

const NAMES = Object.keys(RUN_STATES) as RunState[]

/** What waits for an answer, and which sessions are worked on, wait, or have input nobody works on. */
export function RunsPage() {
  usePageTitle('Runs')
  const sessions = useRef<HTMLElement>(null)
  return (
    <div className="page is-detail">
      <div className="page-head">
        <h1>Runs</h1>
      </div>
      <RequestsQueue onSkip={() => sessions.current?.focus()} />
      <RunsList place={sessions} />
    </div>
  )
}

function RunsList({ place }: { place: Ref<HTMLElement> }) {
  const { query } = useAddress()
  const state = NAMES.find((name) => name === query.get('state')) ?? 'running'
  const runs = useRunsIn(state)
  const { data, isPending, isError, error, hasNextPage, isFetchingNextPage } = runs
  const items = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data])
  // As many at once as their figures are read for.
  const sessions = useMemo(
    () => items.map(({ session_id: id, since }) => ({ id, user_id: null, updated_at: since })),
    [items],
  )
  return (
    <section className="requests" aria-label="Sessions by run" ref={place} tabIndex={-1}>
      <h2>Sessions</h2>
      <fieldset className="states">
        <legend className="visually-hidden">State</legend>
        {NAMES.map((name) => (
          <button
            key={name}
            type="button"
            className="button is-small"
            aria-pressed={name === state}
            onClick={() => navigate(withQuery('/runs', { state: name }), { replace: true })}
          >
            {name[0]!.toUpperCase() + name.slice(1)}
            {name === state && data && (
              <span className="mono"> {countOfRead(items.length, hasNextPage)}</span>
            )}
          </button>
        ))}
      </fieldset>
      <p className="hint">{RUN_STATES[state]}</p>
      {isPending ? (
        <Loading what="runs" />
      ) : isError && items.length === 0 ? (
        <Failure error={error} onRetry={() => void runs.refetch()} />
      ) : items.length === 0 ? (
        <p className="faint">No session is {state}.</p>
      ) : (
        <div className="figures" role="region" aria-label="Runs" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Session</th>
                <th scope="col">Since</th>
                <th scope="col">Runner</th>
                <th scope="col">Input</th>
                <th scope="col">Open requests</th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ session_id, since, run }) => (
                <tr key={session_id}>
                  <th scope="row">
                    <RunTitle id={session_id} sessions={sessions} />
                  </th>
                  <td>
                    <Timestamp at={since} />
                  </td>
                  <td className="mono">{run.owner ?? '–'}</td>
                  <td>{run.pending > 0 ? countText(run.pending) : '–'}</td>
                  <td>{run.open_requests > 0 ? countText(run.open_requests) : '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {hasNextPage && (
        <button
          type="button"
          className="button"
          disabled={isFetchingNextPage}
          onClick={() => void runs.fetchNextPage()}
        >
          Show more
        </button>
      )}
    </section>
  )
}

function RunTitle({ id, sessions }: { id: string; sessions: Parameters<typeof useFacts>[1] }) {
  const { figures } = useFacts(sessions.find((session) => session.id === id)!, sessions)
  return (
    <Link to={`/sessions/${id}`} title={figures?.title ?? undefined}>
      {figures?.title ?? `${id.slice(0, 4)}…${id.slice(-8)}`}
    </Link>
  )
}
