import type { Session, TimelineItem } from '@annals/client'
import { useQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'

/** Entries of a session that are compared, from the first. */
export const ENTRIES_MAX = 2_000
const PAGE = 200

export interface WholeLog {
  session: Session
  items: TimelineItem[]
  is_cut: boolean
}

/** A session with its entries. */
export function useWholeLog(id: string) {
  const { annals, project_id } = useProject()
  return useQuery({
    queryKey: [project_id, 'whole_log', id],
    enabled: id !== '',
    queryFn: async ({ signal }): Promise<WholeLog> => {
      const session = await annals.sessions.get(id, { signal })
      const items: TimelineItem[] = []
      for await (const page of annals.sessions.timeline(id, { limit: PAGE }, { signal }).pages()) {
        items.push(...page.items)
        if (items.length >= ENTRIES_MAX) return { session, items, is_cut: page.has_more }
      }
      return { session, items, is_cut: false }
    },
  })
}
