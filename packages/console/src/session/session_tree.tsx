import type { Session } from '@annals/client'
import { shownOutcome } from '@annals/messages/session'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { Link } from '../address/link.tsx'
import { countText } from '../parts/timestamp.tsx'
import { useFigures } from '../sessions/facts_query.ts'

type Relative = Pick<Session, 'id' | 'configs' | 'updated_at'> & {
  parent_id: string | null
  forked_from: string | null
  forked_at_seq: number | null
  last_seq: number
}

interface Tree {
  items: Relative[]
  /** Those that are not among them; the service counts this many. */
  more: number
}

const COUNTED_MAX = 450
/** Beyond these, the tree is folded at first. */
const OPEN_MAX = 6

/** A session's origin, and the sessions below it and next to it. Nothing for a session on its own. */
export function SessionTree({ id }: { id: string }) {
  const { project_id } = useProject()
  const { data: tree } = useQuery({
    queryKey: [project_id, 'tree', id],
    queryFn: ({ signal }) => ask<Tree>(`/console/data/tree?id=${id}`, { opens: project_id, signal }),
  })
  const [opened, setOpened] = useState<boolean>()
  if (!tree || tree.items.length === 0) return null
  const { items, more } = tree
  const is_open = opened ?? items.length <= OPEN_MAX
  const ids = new Set(items.map((item) => item.id))
  const roots = items.filter((item) => !ids.has(aboveOf(item) ?? ''))
  return (
    <nav className="session-tree" aria-label="Related sessions">
      <details open={is_open} onToggle={({ currentTarget }) => setOpened(currentTarget.open)}>
        <summary>
          {countText(items.length + more)}
          {more >= COUNTED_MAX && ' or more'} related sessions
        </summary>
        {is_open && <Branch of={roots} {...{ items, id }} />}
        {is_open && more > 0 && (
          <p className="hint">
            and {countText(more)}
            {more >= COUNTED_MAX && ' or more'} that are not shown
          </p>
        )}
      </details>
    </nav>
  )
}

function Branch({ of, items, id }: { of: Relative[]; items: Relative[]; id: string }) {
  return (
    <ul>
      {of.map((session) => {
        const below = items.filter((item) => aboveOf(item) === session.id)
        return (
          <li key={session.id}>
            <Twig session={session} items={items} is_here={session.id === id} />
            {below.length > 0 && <Branch of={below} {...{ items, id }} />}
          </li>
        )
      })}
    </ul>
  )
}

function Twig({ session, items, is_here }: { session: Relative; items: Relative[]; is_here: boolean }) {
  const { id, configs, last_seq, parent_id, forked_from, forked_at_seq } = session
  const figures = useFigures(session, items)
  const outcome = shownOutcome(configs, useProject().outcomes)
  const failures = figures?.failures ?? 0
  return (
    <div className="twig">
      <Link to={`/sessions/${id}`} aria-current={is_here ? 'page' : undefined} title={id}>
        <span className="twig-title">{figures?.title ?? `${id.slice(0, 4)}…${id.slice(-8)}`}</span>{' '}
        <span className="faint">
          {countText(last_seq)} {last_seq === 1 ? 'entry' : 'entries'}
        </span>{' '}
        {outcome && <span className={`outcome is-${outcome.verdict}`}>{outcome.word}</span>}{' '}
        {failures > 0 && (
          <span className="is-bad">
            {countText(failures)} failed {failures === 1 ? 'call' : 'calls'}
          </span>
        )}
      </Link>
      {!parent_id && forked_from && (
        <Link className="faint" to={`/sessions/${forked_from}?seq=${forked_at_seq ?? 1}`}>
          fork up to entry {forked_at_seq}
        </Link>
      )}
    </div>
  )
}

function aboveOf({ parent_id, forked_from }: Relative): string | null {
  return parent_id ?? forked_from
}
