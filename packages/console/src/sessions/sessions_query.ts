import type { Annals, Page, Session } from '@annals/client'
import { type InfiniteData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import type { Filter } from './conditions.ts'

/** What the list shows, as in its address. */
export interface SessionsView {
  user: string | undefined
  filter: Filter
  oldest_first: boolean
}

const PAGE = 100
/** A list with more pages than these is not refetched as a whole. */
const PAGES_ANEW_MAX = 3
const NEWEST_EVERY_MS = 5_000

/**
 * The sessions of a view, page by page as the list is scrolled. Another page costs the same however many were loaded:
 * nothing here iterates over the previous ones.
 */
export function useSessions(view: SessionsView) {
  const { annals, project_id } = useProject()
  return useInfiniteQuery({
    queryKey: [project_id, 'sessions', view],
    queryFn: ({ pageParam, signal }) => listOf(annals, view, PAGE, signal).page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    structuralSharing: false,
    placeholderData: untilAnswered(project_id),
    refetchOnMount: ({ state }) => (state.data?.pages.length ?? 0) <= PAGES_ANEW_MAX,
  })
}

/** The query of a view's first page. */
export function useReadAnew(view: SessionsView): () => Promise<void> {
  const { project_id } = useProject()
  const queries = useQueryClient()
  const queryKey = [project_id, 'sessions', view]
  return () => {
    queries.setQueryData<InfiniteData<Page<Session>, string | undefined>>(queryKey, (read) =>
      read ? { pages: read.pages.slice(0, 1), pageParams: read.pageParams.slice(0, 1) } : read,
    )
    return queries.refetchQueries({ queryKey, exact: true })
  }
}

/** The newest session of the view, polled every few seconds. */
export function useNewest(view: SessionsView) {
  const { annals, project_id } = useProject()
  return useQuery({
    queryKey: [project_id, 'newest', view.user, view.filter],
    queryFn: async ({ signal }) =>
      (await listOf(annals, { ...view, oldest_first: false }, 1, signal).page()).items[0]?.id ?? null,
    refetchInterval: NEWEST_EVERY_MS,
    enabled: !view.oldest_first,
  })
}

function listOf(
  annals: Annals,
  { user, filter, oldest_first }: SessionsView,
  limit: number,
  signal: AbortSignal,
) {
  return annals.sessions.list(
    { user, filter_by_configs: filter, time_desc: !oldest_first, limit },
    { signal },
  )
}

interface Head {
  session_id: string
  last_seq: number
  total_tokens: number
}

/** Data of a session that the API's list lacks: read for a whole page when one of its rows is visible. */
export function useFacts(session: Session, page: Session[]): { user?: string; entries?: number } {
  const { project_id } = useProject()
  const user = useIdentifier(session.user_id, page)
  const { data } = useQuery({
    queryKey: [project_id, 'heads', headsKey(page)],
    queryFn: async () => {
      const path = `/console/data/heads?ids=${page.map(({ id }) => id)}`
      const { items } = await ask<{ items: Head[] }>(path, { opens: project_id })
      return new Map(items.map((head) => [head.session_id, head.last_seq]))
    },
    structuralSharing: false,
  })
  const entries = data?.get(session.id)
  return { ...(user !== undefined && { user }), ...(entries !== undefined && { entries }) }
}

/** A user's identifier, looked up together with those of the whole page. */
export function useIdentifier(
  user_id: string | null,
  page: Array<{ user_id: string | null }> = [{ user_id }],
): string | undefined {
  const { project_id } = useProject()
  const ids = idsKey(page)
  const { data } = useQuery({
    queryKey: [project_id, 'identifiers', ids],
    queryFn: async () => {
      const path = `/console/data/identifiers?ids=${ids}`
      const { items } = await ask<{ items: Array<{ id: string; identifier: string }> }>(path, {
        opens: project_id,
      })
      return new Map(items.map(({ id, identifier }) => [id, identifier]))
    },
    enabled: ids !== '',
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  })
  return user_id === null ? undefined : data?.get(user_id)
}

/** Changes with each session of the page. */
const headsKey = once((page: Session[]) => page.map(({ id, updated_at }) => `${id} ${updated_at}`).join())

const idsKey = once((page: Array<{ user_id: string | null }>) =>
  [...new Set(page.map(({ user_id }) => user_id).filter((id) => id !== null))].sort().join(),
)

/** Computes once per object, however many rows ask. */
function once<Of extends object, Value>(compute: (of: Of) => Value): (of: Of) => Value {
  const computed = new WeakMap<Of, Value>()
  return (of) => {
    const value = computed.get(of) ?? compute(of)
    computed.set(of, value)
    return value
  }
}

/** Sessions counted by creation time. */
export interface OverTime {
  /** Width of a column. */
  seconds: number
  sessions: number
  columns: Array<{ start: string; sessions: number }>
}

export function useOverTime({ user, filter }: SessionsView) {
  const { project_id } = useProject()
  const query = new URLSearchParams()
  if (user) query.set('user', user)
  if (Object.keys(filter).length > 0) query.set('filter_by_configs', JSON.stringify(filter))
  return useQuery({
    queryKey: [project_id, 'over_time', String(query)],
    queryFn: ({ signal }) => ask<OverTime>(`/console/data/over_time?${query}`, { opens: project_id, signal }),
    placeholderData: untilAnswered(project_id),
    refetchInterval: 30_000,
  })
}

/**
 * Keeps the previous data until the answer arrives, unless it belongs to another project: nothing jumps, and a click
 * right after typing still hits its button.
 */
function untilAnswered(project_id: string) {
  return <Data>(shown: Data | undefined, query?: { queryKey: readonly unknown[] }) =>
    query?.queryKey[0] === project_id ? shown : undefined
}
