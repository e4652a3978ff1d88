import type { Statement } from '@annals/client'
import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { useProject } from '../access/project_context.tsx'

export type State = Statement['state']

/** In the order in which a person looks at them, and what each means. */
export const STATES: Record<State, string> = {
  proposed: 'Waiting for a person.',
  active: 'Given to agents.',
  conflict: 'Sessions contradict it. A person decides.',
  retired: 'Rejected, or taken out by a person.',
  revoked: 'What it rested on was deleted, and its text with that.',
}

const PAGE = 20
const LEARNING_MS = 3_000
const LEARNT_MS = 15_000

/** Statements of a space in one state, newest first. */
export function useStatements(space_id: string, state: State) {
  const { annals, project_id } = useProject()
  const query = useInfiniteQuery({
    queryKey: [project_id, 'learnt', space_id, 'statements', state],
    queryFn: ({ pageParam, signal }) =>
      annals.learningSpaces
        .statements(space_id, { state, limit: PAGE, time_desc: true }, { signal })
        .page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
  })
  return { ...query, items: query.data?.pages.flatMap(({ items }) => items) ?? [] }
}

/** What the skills of a space were, newest first. */
export function useHistory(space_id: string) {
  const { annals, project_id } = useProject()
  const query = useInfiniteQuery({
    queryKey: [project_id, 'learnt', space_id, 'history'],
    queryFn: ({ pageParam, signal }) => annals.learningSpaces.history(space_id, { signal }).page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
  })
  return { ...query, items: query.data?.pages.flatMap(({ items }) => items) ?? [] }
}

/** Skills of a space: learnt, and written ones that it includes. */
export function useSkills(space_id: string) {
  const { annals, project_id } = useProject()
  return useQuery({
    queryKey: [project_id, 'learnt', space_id, 'skills'],
    queryFn: ({ signal }) => annals.learningSpaces.skills(space_id, { signal }),
  })
}

/** The sessions that a space learns from. When one got further, what was learnt is read again. */
export function useSpaceSessions(space_id: string) {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const sessions = useQuery({
    queryKey: [project_id, 'space_sessions', space_id],
    queryFn: ({ signal }) => annals.learningSpaces.sessions(space_id, { signal }),
    refetchInterval: ({ state: { data } }) =>
      data?.length && data.every(({ status }) => /completed|failed/.test(status)) ? LEARNT_MS : LEARNING_MS,
  })
  const before = useRef(sessions.data)
  useEffect(() => {
    if (before.current && before.current !== sessions.data)
      void queries.invalidateQueries({ queryKey: [project_id, 'learnt', space_id] })
    before.current = sessions.data
  }, [sessions.data, queries, project_id, space_id])
  return sessions
}
