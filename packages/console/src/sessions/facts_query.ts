import type { Session } from '@annals/client'
import { useQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'

/** Figures of a session that the API's list lacks. */
export interface SessionFigures {
  session_id: string
  title: string | null
  last_seq: number
  total_tokens: number
  /** When its first entry happened; null without one. */
  began_at: string | null
  duration_ms: number
  calls: number
  failures: number
  /** Whether the whole log was read for its calls and its title; more of it is read in a moment. */
  is_whole: boolean
  /** An automatic summary of it waits for the model, or could not be written. */
  summary: 'waits' | 'failed' | null
}

/** The figures of up to 50 sessions. */
export async function readFigures(
  project_id: string,
  ids: string,
  signal: AbortSignal,
): Promise<Map<string, SessionFigures>> {
  const path = `/console/data/figures?ids=${ids}`
  const { items } = await ask<{ items: SessionFigures[] }>(path, { opens: project_id, signal })
  return new Map(items.map((figures) => [figures.session_id, figures]))
}

export interface SessionFacts {
  user: string | undefined
  figures: SessionFigures | undefined
}

/** What has not been read yet is asked for again. */
export const UNREAD_EVERY_MS = 2_000

/** A session's facts in a list. */
type Listed = Pick<Session, 'id' | 'updated_at'>
type WithUser = Pick<Session, 'user_id'>

/** Sessions whose figures are read at once, when one of their rows is visible. */
const FIGURES_AT_ONCE = 32

/** What the API's list lacks of a session of a page. */
export function useFacts(session: Listed & WithUser, page: Array<Listed & WithUser>): SessionFacts {
  const user = useIdentifier(session.user_id, page)
  return { user, figures: useFigures(session, page) }
}

/** A session's figures, read together with those of others on its page. */
export function useFigures({ id }: Listed, page: Listed[]): SessionFigures | undefined {
  const { project_id } = useProject()
  const part = partsOf(page).get(id)
  const { data } = useQuery({
    queryKey: [project_id, 'figures', part?.key],
    enabled: part !== undefined,
    queryFn: ({ signal }) => readFigures(project_id, part!.ids, signal),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: ({ state }) => (isWhole(state.data) ? false : UNREAD_EVERY_MS),
    structuralSharing: false,
  })
  return data?.get(id)
}

function isWhole(figures: Map<string, SessionFigures> | undefined): boolean {
  return [...(figures?.values() ?? [])].every(({ is_whole }) => is_whole)
}

/** A user's identifier, looked up together with those of the whole page. */
export function useIdentifier(user_id: string | null, page: WithUser[] = [{ user_id }]): string | undefined {
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
const partsOf = once((page: Listed[]) => {
  const parts = new Map<string, { key: string; ids: string }>()
  for (let from = 0; from < page.length; from += FIGURES_AT_ONCE) {
    const sessions = page.slice(from, from + FIGURES_AT_ONCE)
    const key = sessions.map(({ id, updated_at }) => `${id} ${updated_at}`).join()
    const part = { key, ids: sessions.map(({ id }) => id).join() }
    for (const { id } of sessions) parts.set(id, part)
  }
  return parts
})

const idsKey = once((page: WithUser[]) =>
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
