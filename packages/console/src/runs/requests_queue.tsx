import type { Resolution, RunnerRequest } from '@annals/client'
import { useMemo, useRef, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { countOfRead } from '../parts/timestamp.tsx'
import { useFacts } from '../sessions/facts_query.ts'
import { useKeys } from '../shell/shortcuts.ts'
import { Answers, AskedAt, AskedText } from './request_card.tsx'
import { useOpenRequests, useResolve } from './runs_query.ts'

/** The requests that wait for an answer, the oldest first; by the keyboard too. */
export function RequestsQueue({ onSkip }: { onSkip: () => void }) {
  const requests = useOpenRequests()
  const { isPending, isError, error, hasNextPage, isFetchingNextPage } = requests
  const [asked, setAsked] = useState('')
  const kinds = useMemo(() => [...new Set(requests.items.map(askedFor))].sort(), [requests.items])
  const items = kinds.includes(asked)
    ? requests.items.filter((request) => askedFor(request) === asked)
    : requests.items
  const { may_write } = useProject()
  const list = useRef<HTMLOListElement>(null)
  const [current, setCurrent] = useState<string>()
  const resolving = useResolve()
  const at = items.findIndex(({ id }) => id === current)
  const placeOf = (id: string | undefined) =>
    list.current?.querySelector<HTMLElement>(`[data-request="${id}"]`)
  const answer = (request: RunnerRequest, how: Resolution) => {
    if (resolving.isPending || !may_write) return
    const here = items.indexOf(request)
    const next = (items[here + 1] ?? items[here - 1])?.id
    resolving.mutate({ request, ...how }, { onSuccess: () => placeOf(next)?.focus() })
  }
  /** For a key: on the request that has the focus, and once however long it is held. */
  const onCurrent = (act: (request: RunnerRequest) => void) => (event: KeyboardEvent) => {
    const request = items[at]
    if (request && !event.repeat && placeOf(request.id)?.contains(document.activeElement)) act(request)
  }
  const approval = (decision: 'approve' | 'deny') =>
    onCurrent((request) => request.kind === 'approval' && answer(request, { decision }))
  const option = (index: number) =>
    onCurrent((request) => {
      const chosen = request.kind === 'question' ? request.options?.[index] : undefined
      if (chosen !== undefined) answer(request, { decision: 'answer', answer: chosen })
    })
  useKeys({
    j: () => placeOf(items[Math.min(at + 1, items.length - 1)]?.id)?.focus(),
    k: () => placeOf(items[Math.max(at - 1, 0)]?.id)?.focus(),
    o: onCurrent(({ session_id, seq }) => navigate(`/sessions/${session_id}?seq=${seq}`)),
    a: approval('approve'),
    d: approval('deny'),
    e: onCurrent(({ id }) => placeOf(id)?.querySelector<HTMLElement>('[data-answer]')?.focus()),
    ...Object.fromEntries(Array.from({ length: 9 }, (_, index) => [String(index + 1), option(index)])),
  })
  const sessions = useMemo(
    () =>
      [...new Map(items.map(({ session_id, created_at }) => [session_id, created_at]))].map(
        ([id, updated_at]) => ({ id, user_id: null, updated_at }),
      ),
    [items],
  )
  return (
    <section className="requests" aria-label="Requests">
      <h2>
        Requests <span className="mono">{requests.isSuccess && countOfRead(items.length, hasNextPage)}</span>
      </h2>
      {kinds.length > 1 && (
        <div className="decisions">
          <label className="by">
            Show{' '}
            <select value={asked} onChange={({ target }) => setAsked(target.value)}>
              <option value="">Everything</option>
              {kinds.map((kind) => (
                <option key={kind} value={kind}>
                  {kind}
                </option>
              ))}
            </select>
          </label>
          <button type="button" className="button is-small" onClick={onSkip}>
            Skip to sessions by run
          </button>
        </div>
      )}
      {items.length > 0 && (
        <p className="hint">
          <kbd>j</kbd> <kbd>k</kbd> next and previous, <kbd>o</kbd> its entry, <kbd>a</kbd> approve,{' '}
          <kbd>d</kbd> deny, <kbd>1</kbd> to <kbd>9</kbd> an option, <kbd>e</kbd> answer
        </p>
      )}
      {resolving.isError && (
        <p className="failure-line" role="alert">
          Not answered: {resolving.error.message}
        </p>
      )}
      {isPending ? (
        <Loading what="requests" />
      ) : isError && items.length === 0 ? (
        <Failure error={error} onRetry={() => void requests.refetch()} />
      ) : items.length === 0 ? (
        <p className="faint">Nothing waits for an answer.</p>
      ) : (
        <ol ref={list}>
          {items.map((request) => (
            <li key={request.id}>
              <article
                className="card request"
                aria-label={request.text ?? request.call?.name ?? request.kind}
                data-request={request.id}
                tabIndex={-1}
                onFocus={() => setCurrent(request.id)}
              >
                <QueuedHead request={request} sessions={sessions} />
                <AskedText request={request} />
                <Answers
                  request={request}
                  is_busy={resolving.isPending}
                  onAnswer={(how) => answer(request, how)}
                />
              </article>
            </li>
          ))}
        </ol>
      )}
      {hasNextPage && (
        <button
          type="button"
          className="button"
          disabled={isFetchingNextPage}
          onClick={() => void requests.fetchNextPage()}
        >
          Show more
        </button>
      )}
    </section>
  )
}

/** By what the requests can be told apart: the tool that is to be called, or that they ask something. */
function askedFor({ kind, call }: RunnerRequest): string {
  return call?.name ?? (kind === 'question' ? 'Questions' : 'Approvals without a call')
}

function QueuedHead(props: { request: RunnerRequest; sessions: Parameters<typeof useFacts>[1] }) {
  const { request, sessions } = props
  const { session_id, seq, kind } = request
  const { figures } = useFacts(sessions.find(({ id }) => id === session_id)!, sessions)
  return (
    <p className="request-head">
      <span className="tag">{kind}</span>
      <Link to={`/sessions/${session_id}?seq=${seq}`}>
        {figures?.title ?? `${session_id.slice(0, 4)}…${session_id.slice(-8)}`}
      </Link>
      <AskedAt request={request} />
    </p>
  )
}
