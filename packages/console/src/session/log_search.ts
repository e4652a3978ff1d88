import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import type { Finder } from '../search/finder.ts'
import { LOG_PAGE, type Log, pageQuery } from './log_query.ts'

/** The results of a search so far. */
export interface LogSearch {
  /** Seqs, in order. */
  found: number[]
  /** The seq up to which it has searched. */
  searched: number
  is_done: boolean
}

const FOUND_MAX = 5_000
const WAIT_MS = 200
const NOTHING: LogSearch = { found: [], searched: 0, is_done: true }

/** Searches all entries for a text, page by page from the first, and then new entries. */
export function useLogSearch(
  session_id: string,
  opened_at: number,
  log: Log,
  finder: Finder | undefined,
): LogSearch {
  const project = useProject()
  const queries = useQueryClient()
  const [stored, setStored] = useState<LogSearch>(NOTHING)
  useEffect(() => {
    setStored(finder ? { ...NOTHING, is_done: false } : NOTHING)
    if (!finder) return
    let is_over = false
    const search = async () => {
      const found: number[] = []
      for (let page = 0; page * LOG_PAGE < opened_at && found.length < FOUND_MAX; page++) {
        if (is_over) return
        const items = await queries.fetchQuery(pageQuery(project, session_id, page, opened_at))
        if (is_over) return
        for (const item of items) if (item.seq <= opened_at && finder.isIn(item)) found.push(item.seq)
        setStored({ found: [...found], searched: Math.min((page + 1) * LOG_PAGE, opened_at), is_done: false })
      }
      if (!is_over) setStored((before) => ({ ...before, is_done: true }))
    }
    // Not for each typed letter.
    const timer = setTimeout(
      () => void search().catch(() => setStored((before) => ({ ...before, is_done: true }))),
      WAIT_MS,
    )
    return () => {
      is_over = true
      clearTimeout(timer)
    }
  }, [finder, project, queries, session_id, opened_at])
  const arrived = useMemo(
    () =>
      finder
        ? log.read.filter((item) => item.seq > opened_at && finder.isIn(item)).map(({ seq }) => seq)
        : [],
    [log.read, finder, opened_at],
  )
  return useMemo(() => ({ ...stored, found: [...stored.found, ...arrived] }), [stored, arrived])
}
