import { AnnalsError } from '@annals/client'
import type { ReactNode } from 'react'
import { Link } from '../address/link.tsx'

/** Something is loading. */
export function Loading({ what }: { what: string }) {
  return (
    <div className="state is-loading" role="status">
      <span className="pulse" aria-hidden="true" />
      Loading {what}…
    </div>
  )
}

/** An empty state, and what to do about it. `is_page`: the view has nothing else, so this is its title. */
export function Empty(props: { title: string; is_page?: boolean; children?: ReactNode }) {
  const { title, is_page = false, children } = props
  const Title = is_page ? 'h1' : 'h2'
  return (
    <div className="state">
      <Title>{title}</Title>
      <div className="state-more">{children}</div>
    </div>
  )
}

/** A failure: the service's message, and what to do next. `is_page` as for Empty. */
export function Failure(props: { error: unknown; is_page?: boolean; onRetry?: (() => void) | undefined }) {
  const { error, is_page = false, onRetry } = props
  const Title = is_page ? 'h1' : 'h2'
  const known = error instanceof AnnalsError ? error : undefined
  // What the service refuses, it refuses again.
  const is_refused = known !== undefined && known.status >= 400 && known.status < 500 && known.status !== 429
  return (
    <div className="state is-failure" role="alert">
      <Title>{titleOf(known)}</Title>
      <p>{known?.message ?? String(error)}</p>
      {known?.requestId && (
        <p className="hint">
          Request <code>{known.requestId}</code> in the server’s log.
        </p>
      )}
      <div className="state-more">
        {onRetry && !is_refused && (
          <button type="button" className="button" onClick={onRetry}>
            Try again
          </button>
        )}
        {known?.status === 401 && (
          <Link className="button is-primary" to="/sessions?sign_in=1">
            Sign in again
          </Link>
        )}
        {is_page && is_refused && known.status !== 401 && <Link to="/sessions">All sessions</Link>}
      </div>
    </div>
  )
}

function titleOf(error: AnnalsError | undefined): string {
  if (!error) return 'Something went wrong'
  if (error.status === 0) return 'No answer'
  if (error.status === 401) return 'This key no longer opens the project'
  if (error.status === 403) return 'This key does not allow that'
  if (error.status === 404) return 'Not found'
  if (error.status === 503) return 'The service is overloaded or its database is unavailable'
  return 'The request was refused'
}

/** The page for an unknown address. */
export function NotFound() {
  return (
    <Empty title="There is no such page" is_page>
      <Link to="/sessions">All sessions</Link>
    </Empty>
  )
}
