import type { ToolFailures, ToolPage } from '@annals/client'
import { useQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { type TimeRange, timesOf } from '../sessions/time_range.tsx'

const TOOLS_MAX = 100
const STALE_MS = 10_000
/** While stored sessions are being read, the figures are asked for again. */
const UNREAD_EVERY_MS = 2_000

/** The tools of a project, with the calls that were made in a time. */
export function useTools(range: TimeRange) {
  const { project_id, annals } = useProject()
  return useQuery({
    queryKey: [project_id, 'tools', range],
    queryFn: ({ signal }) => annals.tools({ ...timesOf(range), limit: TOOLS_MAX }, { signal }),
    refetchInterval: ({ state }) => everyUntilComplete(state.data),
    staleTime: STALE_MS,
  })
}

/** The failures of one tool. */
export function useFailures(name: string | undefined, range: TimeRange) {
  const { project_id, annals } = useProject()
  return useQuery({
    queryKey: [project_id, 'tool', name, range],
    queryFn: ({ signal }) => annals.tool(name!, timesOf(range), { signal }),
    enabled: name !== undefined,
    refetchInterval: ({ state }) => everyUntilComplete(state.data),
    staleTime: STALE_MS,
  })
}

function everyUntilComplete(found: Pick<ToolPage, 'complete' | 'counted_from'> | undefined): number | false {
  return !found || found.complete || found.counted_from !== null ? false : UNREAD_EVERY_MS
}

/** A note for an answer that does not count everything; undefined if it does. */
export function whatIsLeft({
  complete,
  counted_from,
  indexing,
}: Pick<ToolFailures, 'complete' | 'counted_from' | 'indexing'>): string | undefined {
  if (indexing)
    return `Reading what is stored: ${indexing.sessions_done.toLocaleString('en')} of ${indexing.sessions.toLocaleString('en')} sessions so far`
  if (counted_from !== null)
    return `The newest 500,000 calls, since ${new Date(counted_from).toLocaleString()}`
  return complete ? undefined : 'What was stored last is being read'
}
