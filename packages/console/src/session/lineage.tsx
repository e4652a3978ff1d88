import type { Session } from '@annals/client'
import { outcomeOf } from '@annals/messages/session'
import { useQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { Link } from '../address/link.tsx'
import { useFacts } from '../sessions/facts_query.ts'

/** Sub-sessions that are shown; the API has the others. */
const CHILDREN_MAX = 50

/** Where a session comes from, and what is below it: a tree of links. Nothing for a session on its own. */
export function Lineage({ session }: { session: Session }) {
  const { annals, project_id } = useProject()
  const { id, parent_id, forked_from, forked_at_seq } = session
  const children = useQuery({
    queryKey: [project_id, 'children', id],
    queryFn: ({ signal }) => annals.sessions.list({ parent: id, limit: CHILDREN_MAX }, { signal }).page(),
  })
  const items = children.data?.items ?? []
  if (!parent_id && !forked_from && items.length === 0) return null
  return (
    <nav className="lineage" aria-label="Related sessions">
      {forked_from && (
        <p>
          Fork of{' '}
          <Link className="mono" to={`/sessions/${forked_from}?seq=${forked_at_seq ?? 1}`}>
            {shortId(forked_from)}
          </Link>{' '}
          up to entry {forked_at_seq}
        </p>
      )}
      {parent_id && (
        <p>
          Below{' '}
          <Link className="mono" to={`/sessions/${parent_id}`}>
            {shortId(parent_id)}
          </Link>
        </p>
      )}
      {items.length > 0 && (
        <details open={items.length <= 5}>
          <summary>
            {items.length}
            {children.data?.has_more && ' or more'} sub-session{items.length === 1 ? '' : 's'}
          </summary>
          <ul>
            {items.map((child) => (
              <li key={child.id}>
                <Child session={child} page={items} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </nav>
  )
}

function Child({ session, page }: { session: Session; page: Session[] }) {
  const { figures } = useFacts(session, page)
  const outcome = outcomeOf(session.configs)
  return (
    <>
      <Link to={`/sessions/${session.id}`}>{figures?.title ?? shortId(session.id)}</Link>
      {outcome && <span className={`outcome is-${outcome.verdict}`}>{outcome.verdict}</span>}
    </>
  )
}

function shortId(id: string): string {
  return `${id.slice(0, 4)}…${id.slice(-8)}`
}
