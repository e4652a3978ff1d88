import type { Annals, Page, Session } from '@annals/client'
import { type InfiniteData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import type { Filter } from './conditions.ts'
import { type TimeRange, timesOf } from './time_range.tsx'

/** What the list shows, as in its address. */
export interface SessionsView {
  user: string | undefined
  filter: Filter
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
  const { annals, project_id } = useProject()
  return useInfiniteQuery({
    queryKey: [project_id, 'sessions', view],
    queryFn: async ({ pageParam, signal }) => {
      const cursor = pageParam ?? (await startOf(view, project_id, signal))
      return within(await listOf(annals, view, PAGE, signal).page(cursor), view)
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    structuralSharing: false,
    placeholderData: untilAnswered(project_id),
    refetchOnMount: ({ state }) => (state.data?.pages.length ?? 0) <= PAGES_ANEW_MAX,
  })
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
function queryOf({ user, filter }: Pick<SessionsView, 'user' | 'filter'>): URLSearchParams {
  const query = new URLSearchParams()
  if (user) query.set('user', user)
  if (Object.keys(filter).length > 0) query.set('filter_by_configs', JSON.stringify(filter))
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

/** Figures of a session that the API's list lacks. */
export interface SessionFigures {
  session_id: string
  title: string | null
  last_seq: number
  total_tokens: number
  duration_ms: number
  calls: number
  failures: number
  is_whole: boolean
}

export interface SessionFacts {
  user: string | undefined
  figures: SessionFigures | undefined
}

/** Sessions whose figures are read at once, when one of their rows is visible. */
const FIGURES_AT_ONCE = 25

/** What the API's list lacks of a session of a page. */
export function useFacts(session: Session, page: Session[]): SessionFacts {
  const { project_id } = useProject()
  const user = useIdentifier(session.user_id, page)
  const part = partsOf(page).get(session.id)
  const { data } = useQuery({
    queryKey: [project_id, 'figures', part?.key],
    enabled: part !== undefined,
    queryFn: async ({ signal }) => {
      const path = `/console/data/figures?ids=${part!.ids}`
      const { items } = await ask<{ items: SessionFigures[] }>(path, { opens: project_id, signal })
      return new Map(items.map((figures) => [figures.session_id, figures]))
    },
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  })
  return { user, figures: data?.get(session.id) }
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

/** The parts of a page whose figures are read together, by session. A key changes with each session of its part. */
const partsOf = once((page: Session[]) => {
  const parts = new Map<string, { key: string; ids: string }>()
  for (let from = 0; from < page.length; from += FIGURES_AT_ONCE) {
    const sessions = page.slice(from, from + FIGURES_AT_ONCE)
    const key = sessions.map(({ id, updated_at }) => `${id} ${updated_at}`).join()
    const part = { key, ids: sessions.map(({ id }) => id).join() }
    for (const { id } of sessions) parts.set(id, part)
  }
  return parts
})

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
