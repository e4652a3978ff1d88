import { useInfiniteQuery } from '@tanstack/react-query'
import { useProject } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { MoreButton } from '../learning/more_button.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'

const UUID = '[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}'

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
  const { query } = useAddress()
  const session_id = query.get('session') ?? ''
  const reads = useInfiniteQuery({
    queryKey: [project_id, 'reads', session_id],
    queryFn: ({ signal, pageParam }) =>
      ask<ReadPage>(withQuery('/console/data/reads', { session_id, cursor: pageParam }), {
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
        <form className="search" role="search" onSubmit={(event) => event.preventDefault()}>
          <label>
            <span className="visually-hidden">Reads of one session</span>
            <input
              type="search"
              defaultValue={session_id}
              placeholder="Whole id of a session"
              pattern={`\\s*${UUID}\\s*`}
              spellCheck={false}
              autoComplete="off"
              onChange={({ target }) => {
                if (target.validity.valid)
                  navigate(withQuery('/people', { session: target.value.trim() }), { replace: true })
              }}
            />
          </label>
        </form>
      </header>
      {reads.isPending && <Loading what="reads" />}
      {reads.isError && <Failure error={reads.error} onRetry={() => void reads.refetch()} />}
      {reads.data && items.length === 0 && session_id !== '' && (
        <p className="hint">No read of this session is noted.</p>
      )}
      {reads.data && items.length === 0 && session_id === '' && (
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
