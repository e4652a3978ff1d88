import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import { useColumns, useConfigsKeys } from '../sessions/columns.tsx'
import { filterOf } from '../sessions/conditions.ts'
import { pathOf } from '../sessions/sessions_page.tsx'
import { useSessions } from '../sessions/sessions_query.ts'
import { SessionsTable } from '../sessions/sessions_table.tsx'
import { eraseUser } from './erase_user.ts'

const SESSIONS_SHOWN = 10

/** One user: its data, and how to erase it. */
export function UserPage({ identifier }: { identifier: string }) {
  usePageTitle(identifier, 'Users')
  const { annals, project_id, may_write } = useProject()
  const [erases, setErases] = useState(false)
  const queries = useQueryClient()
  const resources = useQuery({
    queryKey: [project_id, 'resources', identifier],
    queryFn: ({ signal }) => annals.users.resources(identifier, { signal }),
  })
  const erase = async (say: (progress: string) => void) => {
    await eraseUser(annals, identifier, (left) => say(`${countText(left)} sessions are left.`))
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
          <b className="mono">{countText(sessions_count)}</b> {sessions_count === 1 ? 'session' : 'sessions'}
        </Link>
        <Link className="tile" to={withQuery('/spaces', { user: identifier })}>
          <b className="mono">{countText(learning_spaces_count)}</b>{' '}
          {learning_spaces_count === 1 ? 'learning space' : 'learning spaces'}
        </Link>
      </div>
      {sessions_count > 0 && <NewestSessions user={identifier} sessions_count={sessions_count} />}
      {may_write && (
        <section className="danger-zone">
          <h2>Erase</h2>
          <p>
            Deletes the user with all sessions, their entries, and all learning spaces. This cannot be undone.
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
        <p>This permanently deletes:</p>
        <ul>
          <li>
            <b>{countText(sessions_count)}</b> {sessions_count === 1 ? 'session' : 'sessions'} with all
            entries
          </li>
          <li>
            <b>{countText(learning_spaces_count)}</b>{' '}
            {learning_spaces_count === 1 ? 'learning space' : 'learning spaces'}
          </li>
          <li>the user’s identifier itself</li>
        </ul>
      </ConfirmDialog>
    </div>
  )
}

function NewestSessions({ user, sessions_count }: { user: string; sessions_count: number }) {
  const columns = useColumns(null)
  const sessions = useSessions({ user, filter: {}, oldest_first: false, range: {} })
  const rows = useMemo(() => sessions.data?.pages[0]?.items.slice(0, SESSIONS_SHOWN) ?? [], [sessions.data])
  const [configs_key = 'agent'] = useConfigsKeys(rows)
  if (sessions.isPending) return <Loading what="sessions" />
  if (sessions.isError && rows.length === 0)
    return <Failure error={sessions.error} onRetry={() => void sessions.refetch()} />
  return (
    <>
      <h2>Newest sessions</h2>
      <SessionsTable
        rows={rows}
        pages={[rows]}
        {...{ columns, configs_key }}
        has_more={false}
        is_reading={false}
        failure={undefined}
        onMore={() => {}}
        onUser={(name) => navigate(pathOf({ user: name }))}
        onCondition={({ path, value }) => navigate(pathOf({ user, filter: filterOf([{ path, value }]) }))}
      />
      {sessions_count > rows.length && (
        <p>
          <Link className="button" to={pathOf({ user })}>
            Show all {countText(sessions_count)} sessions
          </Link>
        </p>
      )}
    </>
  )
}
