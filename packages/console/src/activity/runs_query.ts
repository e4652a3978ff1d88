import { useInfiniteQuery } from '@tanstack/react-query'
import { useEffect, useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { readFigures } from '../sessions/facts_query.ts'
import { type SessionsView, sessionsPage } from '../sessions/sessions_query.ts'
import type { Run } from './run_figures.ts'

/** Sessions whose figures are read with one request. */
const PAGE = 50
/** Newest sessions that are looked at: what they cost is bounded. */
const RUNS_MAX = 500

/** The newest sessions of a view with their figures, read page by page. */
export function useRuns(view: SessionsView) {
  const project = useProject()
  const { project_id } = project
  const query = useInfiniteQuery({
    queryKey: [project_id, 'runs', view],
    queryFn: async ({ pageParam, signal }) => {
      const page = await sessionsPage(project, view, pageParam, PAGE, signal)
      const ids = page.items.map(({ id }) => id).join()
      const figures = ids === '' ? new Map() : await readFigures(project_id, ids, signal)
      const runs: Run[] = page.items.map((session) => ({ session, figures: figures.get(session.id) }))
      return { ...page, runs }
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page, pages) =>
      page.has_more && pages.length * PAGE < RUNS_MAX ? page.next_cursor : undefined,
    staleTime: 60_000,
    structuralSharing: false,
  })
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = query
  useEffect(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage()
  }, [hasNextPage, isFetching, isError, fetchNextPage])
  const runs = useMemo(() => data?.pages.flatMap((page) => page.runs) ?? [], [data])
  return { ...query, runs, is_cut: data?.pages.at(-1)?.has_more === true && !hasNextPage }
}
