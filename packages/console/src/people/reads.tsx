import { useInfiniteQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { Link } from '../address/link.tsx'
import { MoreButton } from '../learning/more_button.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'

interface Read {
  seq: number
  created_at: string
  actor: string
  details: { session_id: string; shown: 'content' | 'listed' }
}
interface ReadPage {
  items: Read[]
  has_more: boolean
  next_cursor: string
}

/** Who read which session, the newest first, where the project notes that. */
export function Reads() {
  const { project_id } = useProject()
  const reads = useInfiniteQuery({
    queryKey: [project_id, 'reads'],
    queryFn: ({ signal, pageParam }) =>
      ask<ReadPage>(`/console/data/reads${pageParam && `?cursor=${pageParam}`}`, {
        opens: project_id,
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ has_more, next_cursor }) => (has_more ? next_cursor : undefined),
  })
  const items = reads.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <section className="admin-project" aria-label="Who read sessions">
      <header>
        <h2>Who read sessions</h2>
        <span className="hint">Once for each session, reader and minute.</span>
      </header>
      {reads.isPending && <Loading what="reads" />}
      {reads.isError && <Failure error={reads.error} onRetry={() => void reads.refetch()} />}
      {reads.data && items.length === 0 && (
        <p className="hint">
          None are noted. The operator switches it on with{' '}
          <code>annals project set … --audit-reads people</code>.
        </p>
      )}
      {items.length > 0 && (
        <div className="keys-table">
          <table>
            <thead>
              <tr>
                <th scope="col">Reader</th>
                <th scope="col">Session</th>
                <th scope="col">Saw</th>
                <th scope="col">When</th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ seq, created_at, actor, details }) => (
                <tr key={seq}>
                  <td title={actor}>{readerOf(actor)}</td>
                  <td>
                    <Link to={`/sessions/${details.session_id}`} className="mono">
                      {details.session_id}
                    </Link>
                  </td>
                  <td>{details.shown === 'content' ? 'its content' : 'it in a list'}</td>
                  <td>
                    <Timestamp at={created_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <MoreButton list={reads} />
    </section>
  )
}

/** A person's address, or the key. */
function readerOf(actor: string): string {
  return actor.split(',')[0]!
}
