import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import { pathOf } from '../sessions/sessions_page.tsx'

/** One user: what there is of them, and how to erase it. */
export function UserPage({ identifier }: { identifier: string }) {
  const { annals, project_id, may_write } = useProject()
  const [erases, setErases] = useState(false)
  const queries = useQueryClient()
  const resources = useQuery({
    queryKey: [project_id, 'resources', identifier],
    queryFn: ({ signal }) => annals.users.resources(identifier, { signal }),
  })
  const erase = async () => {
    await annals.users.erase(identifier)
    await queries.invalidateQueries({ queryKey: [project_id] })
    navigate('/users')
  }
  if (resources.isError)
    return <Failure is_page error={resources.error} onRetry={() => void resources.refetch()} />
  if (!resources.data) return <Loading what="the user" />
  const { sessions_count, learning_spaces_count } = resources.data.counts
  return (
    <div className="page is-detail">
      <p className="crumbs">
        <Link to="/users">Users</Link>
      </p>
      <div className="page-head">
        <h1>{identifier}</h1>
      </div>
      <div className="tiles">
        <Link className="tile" to={pathOf({ user: identifier })}>
          <b className="mono">{countText(sessions_count)}</b> sessions
        </Link>
        <Link className="tile" to={withQuery('/spaces', { user: identifier })}>
          <b className="mono">{countText(learning_spaces_count)}</b> learning spaces
        </Link>
      </div>
      {may_write && (
        <section className="danger-zone">
          <h2>Erase</h2>
          <p>
            Removes the user with all sessions, their entries, and all learning spaces. Nothing brings them
            back.
          </p>
          <button type="button" className="button is-danger-quiet" onClick={() => setErases(true)}>
            Erase this user…
          </button>
        </section>
      )}
      <ConfirmDialog
        title={`Erase ${identifier}`}
        is_open={erases}
        phrase={identifier}
        action="Erase for good"
        onClose={() => setErases(false)}
        run={erase}
      >
        <p>This goes for good:</p>
        <ul>
          <li>
            <b>{countText(sessions_count)}</b> sessions with all of their entries
          </li>
          <li>
            <b>{countText(learning_spaces_count)}</b> learning spaces
          </li>
          <li>the user’s identifier itself</li>
        </ul>
      </ConfirmDialog>
    </div>
  )
}
