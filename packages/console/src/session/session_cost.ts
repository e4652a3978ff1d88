import { readPriceList, SessionCost } from '@annals/messages/session'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import type { Log } from './log_query.ts'

/** What the session's calls of models cost by the operator's price list, at least where the log is not wholly loaded. */
export function useCost({ read, last_seq }: Log): string | undefined {
  const { project_id } = useProject()
  const list = useQuery({
    queryKey: [project_id, 'prices'],
    queryFn: ({ signal }) => ask<unknown>('/console/data/prices', { opens: project_id, signal }),
    staleTime: Number.POSITIVE_INFINITY,
  }).data
  return useMemo(() => {
    if (list == null) return undefined
    const cost = new SessionCost(readPriceList(list))
    for (const item of read) cost.add(item)
    return cost.text(read.length === last_seq)
  }, [list, read, last_seq])
}
