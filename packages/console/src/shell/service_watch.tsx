import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'

const EVERY_MS = 5_000
const AGAIN_MS = 1_500
const ANSWER_MS_MAX = 5_000

/** Reports when the service fails to answer twice in a row. When it answers again, failed queries are repeated. */
export function ServiceWatch() {
  const queries = useQueryClient()
  const { isError: is_away } = useQuery({
    queryKey: ['service_answers'],
    queryFn: async ({ signal }) => {
      const limit = AbortSignal.timeout(ANSWER_MS_MAX)
      const response = await fetch('/health', { signal: AbortSignal.any([signal, limit]) })
      // A proxy in front of the service answers in its place.
      if (!response.ok) throw new Error(`/health answered ${response.status}.`)
      return true
    },
    initialData: true,
    retry: 1,
    retryDelay: AGAIN_MS,
    refetchInterval: ({ state }) => (state.status === 'error' ? AGAIN_MS : EVERY_MS),
    networkMode: 'always',
  })
  const was_away = useRef(false)
  useEffect(() => {
    if (was_away.current && !is_away)
      void queries.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' })
    was_away.current = is_away
  }, [is_away, queries])
  return (
    <p className="service-watch" role="status">
      {is_away && 'The service does not answer. Trying again…'}
    </p>
  )
}
