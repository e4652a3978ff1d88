import type { Annals, Page, Session } from '@annals/client'
import { type InfiniteData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { type Project, useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { type Filter, filterText } from './conditions.ts'
import { type TimeRange, timesOf } from './time_range.tsx'

/** Which sessions, as in the address. */
export interface SessionFilter {
  user: string | undefined
  filter: Filter
}

/** What the list shows, as in its address. */
export interface SessionsView extends SessionFilter {
  oldest_first: boolean
  range: TimeRange
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
  const project = useProject()
  const { project_id } = project
  return useInfiniteQuery({
    queryKey: [project_id, 'sessions', view],
    queryFn: ({ pageParam, signal }) => sessionsPage(project, view, pageParam, PAGE, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    structuralSharing: false,
    placeholderData: untilAnswered(project_id),
    refetchOnMount: ({ state }) => (state.data?.pages.length ?? 0) <= PAGES_ANEW_MAX,
  })
}

/** A page of a view. */
export async function sessionsPage(
  { annals, project_id }: Project,
  view: SessionsView,
  cursor: string | undefined,
  limit: number,
  signal: AbortSignal,
): Promise<Page<Session>> {
  const from = cursor ?? (await startOf(view, project_id, signal))
  return within(await listOf(annals, view, limit, signal).page(from), view)
}

/** Where the list begins if its order leads from one end of the time range to the other. */
async function startOf(
  view: SessionsView,
  project_id: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { from, to } = timesOf(view.range)
  const at = view.oldest_first ? from : to
  if (at === undefined) return undefined
  const query = queryOf(view)
  query.set('time_desc', String(!view.oldest_first))
  query.set('at', at)
  const { cursor } = await ask<{ cursor: string }>(`/console/data/start?${query}`, {
    opens: project_id,
    signal,
  })
  return cursor
}

/** The page up to where the time range ends. */
function within(page: Page<Session>, { range, oldest_first }: SessionsView): Page<Session> {
  const { from, to } = timesOf(range)
  const end = oldest_first ? to : from
  if (end === undefined) return page
  const end_ms = Date.parse(end)
  const isBeyond = ({ created_at }: Session) =>
    oldest_first ? Date.parse(created_at) >= end_ms : Date.parse(created_at) < end_ms
  const items = page.items.filter((session) => !isBeyond(session))
  return items.length === page.items.length ? page : { ...page, items, has_more: false, next_cursor: '' }
}

/** The view's filter as parameters. */
function queryOf({ user, filter }: SessionFilter): URLSearchParams {
  const query = new URLSearchParams()
  if (user) query.set('user', user)
  const configs = filterText(filter)
  if (configs) query.set('filter_by_configs', configs)
  return query
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
    enabled: !view.oldest_first && view.range.to === undefined,
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

/** Sessions counted by when they began. */
export interface OverTime {
  /** Width of a column. */
  seconds: number
  sessions: number
  /** `by`: counts by the JSON text of a value of configs; all others under the empty text. */
  columns: Array<{ start: string; sessions: number; by: Record<string, number> }>
}

/** @param path the member of configs that has the outcome, if any */
export function useOverTime(view: SessionsView, path: string[] | undefined) {
  const { project_id } = useProject()
  const query = queryOf(view)
  for (const [end, at] of Object.entries(timesOf(view.range))) query.set(end, at)
  if (path) query.set('by', JSON.stringify(path))
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
