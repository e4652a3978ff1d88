import type { User } from '@annals/client'
import { type OutcomeWords, verdictOf } from '@annals/messages/session'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { outcomePathOf } from '../sessions/sessions_page.tsx'
import { useSessions } from '../sessions/sessions_query.ts'

/** Users whose figures are read with one request. */
const AT_ONCE = 25
/** Sessions of a user that are counted, the newest. */
export const SESSIONS_COUNTED_MAX = 500

const ALL = { user: undefined, filter: {}, oldest_first: false, range: {} }

export interface UserFigures {
  id: string
  sessions: number
  /** Of the newest sessions; null if there is none. */
  last_activity: string | null
  failed: number
}

interface Counted extends Omit<UserFigures, 'failed'> {
  /** Sessions by the JSON text of a value of configs. */
  by: Record<string, number>
}

/** The member of configs that tells how sessions of this project ended, judged by the newest. */
export function useOutcomePath(): string[] | undefined {
  const { outcomes } = useProject()
  const sessions = useSessions(ALL)
  return useMemo(
    () => outcomePathOf(sessions.data?.pages[0]?.items ?? [], outcomes),
    [sessions.data, outcomes],
  )
}

/** What the API's list lacks of a user, read together with those beside. */
export function useUserFigures(users: User[], index: number, path: string[] | undefined) {
  const { project_id, outcomes } = useProject()
  const from = index - (index % AT_ONCE)
  const part = users.slice(from, from + AT_ONCE)
  const query = new URLSearchParams({ ids: part.map(({ id }) => id).join() })
  if (path) query.set('by', JSON.stringify(path))
  const { data } = useQuery({
    queryKey: [project_id, 'user_figures', String(query)],
    queryFn: async ({ signal }) => {
      const { items } = await ask<{ items: Counted[] }>(`/console/data/users?${query}`, {
        opens: project_id,
        signal,
      })
      return new Map(items.map((item) => [item.id, figuresOf(item, path, outcomes)]))
    },
    staleTime: 30_000,
  })
  return data?.get(users[index]!.id)
}

function figuresOf(
  { by, ...rest }: Counted,
  path: string[] | undefined,
  words: OutcomeWords | undefined,
): UserFigures {
  const failed = Object.entries(by)
    .filter(([value]) => path && verdictOf(path, value, words) === 'failed')
    .reduce((sum, [, sessions]) => sum + sessions, 0)
  return { ...rest, failed }
}
