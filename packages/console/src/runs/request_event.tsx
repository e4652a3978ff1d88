import type { RunnerRequest, TimelineEvent } from '@annals/client'
import { type Json, shortText } from '../json/exact_json.ts'
import { Answers, AskedText } from './request_card.tsx'
import { useOpenRequests, useResolve } from './runs_query.ts'

export const REQUEST_TYPE = 'annals.request'
export const RESOLUTION_TYPE = 'annals.resolution'

const DECIDED: Record<string, string> = { approve: 'Approved', deny: 'Denied', answer: 'Answered' }

/** A request in a log; while it is open, it can be answered here. */
export function RequestEvent({ item }: { item: TimelineEvent }) {
  const asked = item.data as unknown as Pick<RunnerRequest, 'kind' | 'call' | 'text'>
  const open = useOpenRequests(item.session_id).items.find(({ seq }) => seq === item.seq)
  const resolving = useResolve()
  return (
    <section className="card event request" aria-label={`Request: ${asked.kind}`}>
      <p className="card-head">
        <span className="event-type">Request</span>
        <span className="tag">{asked.kind}</span>
        {open && <span className="call-state">waits for an answer</span>}
      </p>
      <AskedText request={asked} />
      {open && (
        <Answers
          request={open}
          is_busy={resolving.isPending}
          onAnswer={(answer) => resolving.mutate({ request: open, ...answer })}
        />
      )}
      {resolving.isError && (
        <p className="failure-line" role="alert">
          Not answered: {resolving.error.message}
        </p>
      )}
    </section>
  )
}

/** The answer to a request, in a log. */
export function ResolutionEvent({ item }: { item: TimelineEvent }) {
  const { decision, answer, by } = item.data as { decision?: string; answer?: Json; by?: string }
  return (
    <section
      className={`card event ${decision === 'deny' ? 'is-failed' : 'is-answered'}`}
      aria-label="Answer to a request"
    >
      <p className="card-head">
        <span className="event-type">{DECIDED[decision ?? ''] ?? 'Resolved'}</span>
        {by && <span className="hint">by {by}</span>}
      </p>
      {answer !== undefined && (
        <p className="request-text" dir="auto">
          {typeof answer === 'string' ? answer : shortText(answer)}
        </p>
      )}
    </section>
  )
}
