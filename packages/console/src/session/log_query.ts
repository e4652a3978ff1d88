import type { AnnalsError, TimelineItem } from '@annals/client'
import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useState } from 'react'
import { type Project, useProject } from '../access/project_context.tsx'

export const LOG_PAGE = 200
/** Pages that are read ahead, so that the outline has the calls of all but the longest logs. */
const PAGES_AHEAD_MAX = 15
const PAGES_AT_ONCE = 2
const FLUSH_MS = 60
/** Entries that are read first, so that those of a page, which may be long, are not waited for. */
const BEGINNING = 20

/** A session's log: the loaded entries by seq, and those that arrive in the meantime. */
export interface Log {
  /** The last seq. */
  last_seq: number
  entry: (seq: number) => TimelineItem | undefined
  /** All loaded entries, in order. */
  read: TimelineItem[]
  /** Requests the entries from one seq to another. */
  want: (from: number, to: number) => void
  is_live: boolean
  failure: Error | undefined
}

/** The query of one page of a log. Entries never change, so a complete page is read once. */
export function pageQuery(project: Project, session_id: string, page: number, last_seq: number) {
  return {
    // The last page grows, so it is cached only for this end of the log.
    queryKey: [project.project_id, 'log', session_id, page, Math.min(last_seq, (page + 1) * LOG_PAGE)],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const query = { after_seq: page * LOG_PAGE, limit: LOG_PAGE }
      return (await project.annals.sessions.timeline(session_id, query, { signal }).page()).items
    },
    staleTime: Number.POSITIVE_INFINITY,
  }
}

/** The end of the log when the view is opened. The tail continues from there. The log's beginning is read along with it. */
export function useLastSeq(session_id: string) {
  const project = useProject()
  const queries = useQueryClient()
  return useQuery({
    queryKey: [project.project_id, 'last_seq', session_id],
    queryFn: async ({ signal }) => {
      const read = async (query: { time_desc?: boolean; limit: number }) =>
        (await project.annals.sessions.timeline(session_id, query, { signal }).page()).items
      const [first, [last]] = await Promise.all([
        read({ limit: BEGINNING }),
        read({ time_desc: true, limit: 1 }),
      ])
      const last_seq = last?.seq ?? 0
      // It may lack what was stored between the two answers; then it is read again.
      const isWhole = last_seq <= BEGINNING && first.length >= last_seq
      const key = isWhole
        ? pageQuery(project, session_id, 0, last_seq).queryKey
        : beginningKey(project, session_id)
      queries.setQueryData(key, first)
      return last_seq
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
}

function beginningKey({ project_id }: Project, session_id: string) {
  return [project_id, 'beginning', session_id]
}

/** The log up to its last seq at opening, page by page, and its live end. */
export function useLog(session_id: string, opened_at: number): Log {
  const project = useProject()
  const queries = useQueryClient()
  const [beginning] = useState(() => queries.getQueryData<TimelineItem[]>(beginningKey(project, session_id)))
  const pages_all = Math.ceil(opened_at / LOG_PAGE)
  const [wanted, setWanted] = useState<number[]>(() => (pages_all > 0 ? [0] : []))
  const results = useQueries({
    queries: wanted.map((page) => pageQuery(project, session_id, page, opened_at)),
    combine: (all) => ({
      pages: all.map(({ data }) => data),
      is_reading: all.some(({ isFetching }) => isFetching),
      failure: all.find(({ error }) => error)?.error ?? undefined,
    }),
  })
  const tail = useTail(project, session_id, opened_at)
  const want = useCallback(
    (from: number, to: number) =>
      setWanted((before) => {
        const first = Math.floor(Math.max(from - 1, 0) / LOG_PAGE)
        const last = Math.min(Math.floor((to - 1) / LOG_PAGE), pages_all - 1)
        const missing = range(first, last).filter((page) => !before.includes(page))
        return missing.length > 0 ? [...before, ...missing].sort((a, b) => a - b) : before
      }),
    [pages_all],
  )
  // Reads ahead a few pages at a time, unless the log is too long.
  useEffect(() => {
    if (results.is_reading || results.failure) return
    const missing = range(0, Math.min(pages_all, PAGES_AHEAD_MAX) - 1).filter(
      (page) => !wanted.includes(page),
    )
    for (const next of missing.slice(0, PAGES_AT_ONCE)) want(next * LOG_PAGE + 1, next * LOG_PAGE + 1)
  }, [results.is_reading, results.failure, wanted, pages_all, want])

  const stored = useMemo(() => {
    const pages = new Map<number, TimelineItem[]>()
    for (const [index, page] of wanted.entries()) {
      const items = results.pages[index] ?? (page === 0 ? beginning : undefined)
      // Later entries arrive by the tail.
      if (items)
        pages.set(
          page,
          items.filter(({ seq }) => seq <= opened_at),
        )
    }
    return pages
  }, [wanted, results.pages, opened_at, beginning])
  const read = useMemo(() => [...[...stored.values()].flat(), ...tail.items], [stored, tail.items])
  const entry = useCallback(
    (seq: number) =>
      seq > opened_at
        ? tail.items[seq - opened_at - 1]
        : stored.get(Math.floor((seq - 1) / LOG_PAGE))?.[(seq - 1) % LOG_PAGE],
    [stored, tail.items, opened_at],
  )
  const last_seq = opened_at + tail.items.length
  return { last_seq, entry, read, want, is_live: tail.is_live, failure: results.failure ?? tail.failure }
}

/** New entries, batched for a moment so that a burst is rendered at once. */
function useTail({ annals }: Project, session_id: string, after: number) {
  const [items, setItems] = useState<TimelineItem[]>([])
  const [is_live, setLive] = useState(false)
  const [failure, setFailure] = useState<AnnalsError>()
  useEffect(() => {
    const end = new AbortController()
    let gathered: TimelineItem[] = []
    const flush = () => {
      const arrived = gathered
      gathered = []
      setItems((before) => [...before, ...arrived])
    }
    const follow = async () => {
      const options = {
        after,
        signal: end.signal,
        on_connect: () => setLive(true),
        on_disconnect: () => setLive(false),
      }
      for await (const item of annals.sessions.tail(session_id, options)) {
        if (gathered.length === 0) setTimeout(flush, FLUSH_MS)
        gathered.push(item)
      }
    }
    setItems([])
    follow().catch((error: AnnalsError) => {
      setLive(false)
      setFailure(error)
    })
    return () => end.abort()
  }, [annals, session_id, after])
  return { items, is_live, failure }
}

function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => first + index)
}
