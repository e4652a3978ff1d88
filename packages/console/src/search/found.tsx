import type { FoundEntry, FoundSession } from '@annals/client'
import { useMemo, useRef } from 'react'
import { withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { countText, Timestamp } from '../parts/timestamp.tsx'
import { useFacts } from '../sessions/facts_query.ts'
import { useKeys } from '../shell/shortcuts.ts'

/** Entries that have all of the words. */
export function FoundEntries({ items, q }: { items: FoundEntry[]; q: string }) {
  // As many at once as their figures are read for.
  const sessions = useMemo(
    () =>
      [...new Map(items.map((item) => [item.session_id, item.created_at]))].map(([id, updated_at]) => ({
        id,
        user_id: null,
        updated_at,
      })),
    [items],
  )
  const list = useRef<HTMLOListElement>(null)
  /** Enter opens the link that has the focus. */
  const step = (direction: 1 | -1) => {
    const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>('li > .found-head > a') ?? [])]
    const here = links.indexOf(document.activeElement as HTMLAnchorElement)
    links[Math.min(Math.max(here + direction, 0), links.length - 1)]?.focus()
  }
  useKeys({ j: () => step(1), k: () => step(-1) })
  return (
    <ol className="found" aria-label="Entries found" ref={list}>
      {items.map((item) => (
        <li key={`${item.session_id} ${item.seq}`}>
          <FoundLine item={item} q={q} sessions={sessions} />
        </li>
      ))}
    </ol>
  )
}

function FoundLine(props: { item: FoundEntry; q: string; sessions: Parameters<typeof useFacts>[1] }) {
  const { item, q, sessions } = props
  const { session_id, seq, snippet } = item
  const { figures } = useFacts(sessions.find(({ id }) => id === session_id)!, sessions)
  return (
    <>
      <p className="found-head">
        <Link to={withQuery(`/sessions/${session_id}`, { seq: String(seq), q })}>
          {figures?.title ?? shortId(session_id)}
        </Link>
        <span className="seq mono">{countText(seq)}</span>
        <EntryFacts entry={item} />
      </p>
      <p className="snippet">{marked(snippet)}</p>
    </>
  )
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

function EntryFacts({ entry }: { entry: FoundEntry }) {
  return (
    <>
      <span className="tag">
        {entry.role === 'tool' ? 'result of a tool' : (entry.type ?? entry.role ?? entry.kind)}
      </span>
      <Timestamp at={entry.created_at} />
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
