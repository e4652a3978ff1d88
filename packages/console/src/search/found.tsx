import type { FoundEntry, FoundSession } from '@annals/client'
import { useQueries } from '@tanstack/react-query'
import { useMemo, useRef } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { countText, Timestamp } from '../parts/timestamp.tsx'
import { UNREAD_EVERY_MS, useFacts } from '../sessions/facts_query.ts'
import { useKeys } from '../shell/shortcuts.ts'

/** Entries that have all of the words, below their sessions: first the session whose entry comes first. */
export function FoundEntries({ items, q }: { items: FoundEntry[]; q: string }) {
  const groups = useMemo(() => bySession(items), [items])
  // As many at once as their figures are read for.
  const sessions = useMemo(
    () => [...groups].map(([id, [first]]) => ({ id, user_id: null, updated_at: first!.created_at })),
    [groups],
  )
  const tools = useToolsOfResults(items)
  const list = useRef<HTMLOListElement>(null)
  /** Enter opens the link that has the focus. */
  const step = (direction: 1 | -1) => {
    const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>('a.found-entry') ?? [])]
    const here = links.indexOf(document.activeElement as HTMLAnchorElement)
    links[Math.min(Math.max(here + direction, 0), links.length - 1)]?.focus()
  }
  useKeys({ j: () => step(1), k: () => step(-1) })
  return (
    <ol className="found" aria-label="Entries found" ref={list}>
      {[...groups].map(([id, entries]) => (
        <li key={id}>
          <FoundSessionHead first={entries[0]!} count={entries.length} q={q} sessions={sessions} />
          <ol>
            {entries.map((item) => (
              <li key={item.seq}>
                <p className="found-head">
                  <Link
                    className="found-entry mono"
                    to={withQuery(`/sessions/${id}`, { seq: String(item.seq), q })}
                    aria-label={`Entry ${item.seq}`}
                  >
                    {countText(item.seq)}
                  </Link>
                  <EntryFacts entry={item} tool={tools.get(`${id}:${item.seq}`)} />
                </p>
                <p className="snippet">{marked(item.snippet)}</p>
              </li>
            ))}
          </ol>
        </li>
      ))}
    </ol>
  )
}

function bySession(items: FoundEntry[]): Map<string, FoundEntry[]> {
  const groups = new Map<string, FoundEntry[]>()
  for (const item of items) groups.set(item.session_id, [...(groups.get(item.session_id) ?? []), item])
  return groups
}

function FoundSessionHead(props: {
  first: FoundEntry
  count: number
  q: string
  sessions: Parameters<typeof useFacts>[1]
}) {
  const { first, count, q, sessions } = props
  const id = first.session_id
  const { figures } = useFacts(sessions.find((session) => session.id === id)!, sessions)
  return (
    <h2 className="found-session">
      <Link to={withQuery(`/sessions/${id}`, { seq: String(first.seq), q })}>
        {figures?.title ?? shortId(id)}
      </Link>
      {count > 1 && <span className="hint">{countText(count)} entries</span>}
    </h2>
  )
}

/** The tools whose results were found, by session and seq. */
function useToolsOfResults(items: FoundEntry[]): Map<string, string> {
  const { project_id } = useProject()
  const of = items.map(({ session_id, seq }) => `${session_id}:${seq}`)
  // Each page is asked for once.
  const pages = Array.from({ length: Math.ceil(of.length / RESULTS_AT_ONCE) }, (_, page) =>
    of.slice(page * RESULTS_AT_ONCE, (page + 1) * RESULTS_AT_ONCE).join(),
  )
  return useQueries({
    queries: pages.map((places) => ({
      queryKey: [project_id, 'result_tools', places],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        ask<ResultTools>(`/console/data/result_tools?of=${places}`, { opens: project_id, signal }),
      staleTime: Number.POSITIVE_INFINITY,
      refetchInterval: ({ state }: { state: { data: ResultTools | undefined } }) =>
        state.data?.is_whole ? false : UNREAD_EVERY_MS,
    })),
    combine: toolsOf,
  })
}

interface ResultTools {
  items: Array<{ session_id: string; seq: number; tool: string }>
  /** All of these entries were looked at for calls. */
  is_whole: boolean
}

const RESULTS_AT_ONCE = 50

function toolsOf(answers: Array<{ data?: ResultTools | undefined }>): Map<string, string> {
  const items = answers.flatMap(({ data }) => data?.items ?? [])
  return new Map(items.map(({ session_id, seq, tool }) => [`${session_id}:${seq}`, tool]))
}

/** Sessions that answer best, each with its best entries. Their links look for no words: no entry has them all. */
export function ClosestSessions({ items }: { items: FoundSession[] }) {
  return (
    <>
      <p role="status">No entry has all of these words. These come closest.</p>
      <ol className="found" aria-label="Sessions that come closest">
        {items.map(({ session_id, title, entries }) => (
          <li key={session_id}>
            <p className="found-head">
              <Link to={entryAddress(entries[0]!)}>{title ?? shortId(session_id)}</Link>
            </p>
            {entries.map((entry) => (
              <div key={entry.seq}>
                <p className="found-head">
                  <Link to={entryAddress(entry)}>Entry {countText(entry.seq)}</Link>
                  <EntryFacts entry={entry} />
                </p>
                <p className="snippet">{marked(entry.snippet)}</p>
              </div>
            ))}
          </li>
        ))}
      </ol>
    </>
  )
}

function EntryFacts({ entry, tool }: { entry: FoundEntry; tool?: string | undefined }) {
  const kind = entry.role === 'tool' ? 'result of a tool' : (entry.type ?? entry.role ?? entry.kind)
  return (
    <>
      <span className="tag">{tool === undefined ? kind : `result of ${tool}`}</span>
      <Timestamp at={entry.occurred_at ?? entry.created_at} />
    </>
  )
}

function entryAddress({ session_id, seq }: FoundEntry): string {
  return withQuery(`/sessions/${session_id}`, { seq: String(seq) })
}

function shortId(id: string): string {
  return `${id.slice(0, 4)}…${id.slice(-8)}`
}

function marked({ text, hits }: FoundEntry['snippet']) {
  const parts = []
  let at = 0
  for (const [start = 0, end = 0] of hits) {
    parts.push(text.slice(at, start), <mark key={start}>{text.slice(start, end)}</mark>)
    at = end
  }
  return [...parts, text.slice(at)]
}
