import type { Annals, Session } from '@annals/client'
import { useInfiniteQuery, useQueries, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import type { Filter } from './conditions.ts'

/** What the list shows, and what its address says. */
export interface SessionsView {
  user: string | undefined
  filter: Filter
  oldest_first: boolean
}

const PAGE = 100
const NEWEST_EVERY_MS = 5_000

/** The sessions of a view, page by page as the list is scrolled. */
export function useSessions(view: SessionsView) {
  const { annals, project_id } = useProject()
  return useInfiniteQuery({
    queryKey: [project_id, 'sessions', view],
    queryFn: ({ pageParam, signal }) => listOf(annals, view, PAGE, signal).page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
  })
}

/** The newest session that the view would show, looked up every few seconds. */
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

/** How many entries sessions have, and what their users are called, a page of sessions at a time. */
export function useFacts(pages: Session[][]): { entries: Map<string, number>; users: Map<string, string> } {
  const { token, project_id } = useProject()
  const users = useIdentifiers(pages.map((page) => page.map(({ user_id }) => user_id)))
  const heads = useQueries({
    queries: pages.map((page) => ({
      queryKey: [project_id, 'heads', ...page.map(({ id, updated_at }) => `${id} ${updated_at}`)],
      queryFn: () => ask<{ items: Head[] }>(`/console/data/heads?ids=${page.map(({ id }) => id)}`, { token }),
      enabled: page.length > 0,
    })),
    combine: (results) => results.map(({ data }) => data),
  })
  const entries = useMemo(
    () =>
      new Map(
        heads.flatMap(
          (page) => page?.items.map((head): [string, number] => [head.session_id, head.last_seq]) ?? [],
        ),
      ),
    [heads],
  )
  return { entries, users }
}

/** What users are called, by their ids. */
export function useIdentifiers(pages: Array<Array<string | null>>): Map<string, string> {
  const { token, project_id } = useProject()
  const results = useQueries({
    queries: pages.map((page) => {
      const ids = [...new Set(page.filter((id) => id !== null))].sort()
      return {
        queryKey: [project_id, 'identifiers', ...ids],
        queryFn: () =>
          ask<{ items: Array<{ id: string; identifier: string }> }>(`/console/data/identifiers?ids=${ids}`, {
            token,
          }),
        enabled: ids.length > 0,
        staleTime: Number.POSITIVE_INFINITY,
      }
    }),
    combine: (all) => all.map(({ data }) => data),
  })
  return useMemo(
    () =>
      new Map(
        results.flatMap(
          (page) => page?.items.map(({ id, identifier }): [string, string] => [id, identifier]) ?? [],
        ),
      ),
    [results],
  )
}

/** Sessions counted by when they were created. */
export interface OverTime {
  /** Width of a column. */
  seconds: number
  sessions: number
  columns: Array<{ start: string; sessions: number }>
}

export function useOverTime({ user, filter }: SessionsView) {
  const { token, project_id } = useProject()
  const query = new URLSearchParams()
  if (user) query.set('user', user)
  if (Object.keys(filter).length > 0) query.set('filter_by_configs', JSON.stringify(filter))
  return useQuery({
    queryKey: [project_id, 'over_time', String(query)],
    queryFn: ({ signal }) => ask<OverTime>(`/console/data/over_time?${query}`, { token, signal }),
    refetchInterval: 30_000,
  })
}
