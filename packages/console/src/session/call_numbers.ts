import { useQueries } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { LOG_PAGE, type Log } from './log_query.ts'

const UNREAD_EVERY_MS = 2_000

interface Numbers {
  /** A seq, and the number of the first call that is recorded there. */
  items: Array<[seq: number, number: number]>
  is_whole: boolean
}

/** The numbers of calls below what is not loaded, by seq: the service has counted those above. */
export function useCallNumbers(id: string, { read, last_seq }: Log): ReadonlyMap<number, number> {
  const { project_id } = useProject()
  const pages = useMemo(() => (read.length < last_seq ? pagesBelowGaps(read) : []), [read, last_seq])
  return useQueries({
    queries: pages.map((page) => ({
      queryKey: [project_id, 'call_numbers', id, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => {
        const query = `id=${id}&after_seq=${page * LOG_PAGE}&to_seq=${(page + 1) * LOG_PAGE}`
        return ask<Numbers>(`/console/data/call_numbers?${query}`, { opens: project_id, signal })
      },
      staleTime: Number.POSITIVE_INFINITY,
      refetchInterval: ({ state }: { state: { data?: Numbers | undefined } }) =>
        state.data?.is_whole === false ? UNREAD_EVERY_MS : (false as const),
    })),
    combine,
  })
}

const NONE: ReadonlyMap<number, number> = new Map()

/** Kept as it is by the library while its answers are the same. */
function combine(all: Array<{ data?: Numbers | undefined }>): ReadonlyMap<number, number> {
  return all.length === 0 ? NONE : new Map(all.flatMap(({ data }) => data?.items ?? []))
}

/** The loaded pages before which another one is missing. */
function pagesBelowGaps(read: Log['read']): number[] {
  const pages = new Set<number>()
  let [expected, is_below] = [1, false]
  for (const { seq } of read) {
    is_below ||= seq !== expected
    expected = seq + 1
    if (is_below) pages.add(Math.floor((seq - 1) / LOG_PAGE))
  }
  return [...pages]
}
