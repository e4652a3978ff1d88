import type { User } from '@annals/client'
import { useInfiniteQuery } from '@tanstack/react-query'
import { type FormEvent, useMemo, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countText, Timestamp } from '../parts/timestamp.tsx'
import { VirtualTable } from '../parts/virtual_table.tsx'
import { pathOf } from '../sessions/sessions_page.tsx'
import { SESSIONS_COUNTED_MAX, useOutcomePath, useUserFigures } from './user_figures_query.ts'

const idOf = ({ id }: { id: string }) => id

/** All users of the project. */
export function UsersPage() {
  usePageTitle('Users')
  const { annals, project_id } = useProject()
  const [text, setText] = useState('')
  const users = useInfiniteQuery({
    queryKey: [project_id, 'users'],
    queryFn: ({ pageParam, signal }) =>
      annals.users.list({ limit: 100, time_desc: true }, { signal }).page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    structuralSharing: false,
  })
  const all = useMemo(() => users.data?.pages.flatMap(({ items }) => items) ?? [], [users.data])
  const rows = useMemo(
    () => all.filter(({ identifier }) => identifier.toLowerCase().includes(text.trim().toLowerCase())),
    [all, text],
  )
  const path = useOutcomePath()
  const open = (event: FormEvent) => {
    event.preventDefault()
    // A user beyond the loaded pages can still be opened by the complete identifier.
    if (text.trim() !== '') navigate(`/users/${encodeURIComponent(text.trim())}`)
  }
  return (
    <div className="page is-list">
      <div className="page-head">
        <h1>Users</h1>
        <form className="search" onSubmit={open} role="search">
          <label>
            <span className="visually-hidden">Find a user</span>
            <input
              data-search
              type="search"
              value={text}
              onChange={(event) => setText(event.target.value)}
              placeholder="Identifier; Enter opens"
              spellCheck={false}
              autoComplete="off"
            />
          </label>
        </form>
      </div>
      {users.isPending ? (
        <Loading what="users" />
      ) : users.isError && all.length === 0 ? (
        <Failure error={users.error} onRetry={() => void users.refetch()} />
      ) : all.length === 0 ? (
        <Empty title="No users yet">
          <p>A user is created when a session or a learning space first names one.</p>
          <Link to="/sessions">All sessions</Link>
        </Empty>
      ) : rows.length === 0 && !users.hasNextPage ? (
        <Empty title={`No user’s identifier contains “${text}”`}>
          <button type="button" className="button" onClick={() => setText('')}>
            Show all users
          </button>
        </Empty>
      ) : (
        <VirtualTable
          label="Users"
          className="users-table"
          columns={['Identifier', 'Sessions', 'Failed', 'Last activity', 'First seen', 'Id']}
          rows={rows}
          keyOf={idOf}
          linkOf={({ identifier }) => `/users/${encodeURIComponent(identifier)}`}
          has_more={users.hasNextPage}
          is_reading={users.isFetchingNextPage}
          failure={users.isError ? users.error : undefined}
          onMore={() => void users.fetchNextPage()}
          renderRow={({ id, identifier, created_at }, index) => (
            <>
              <div role="cell" className="cell-user">
                <Link className="row-link" to={`/users/${encodeURIComponent(identifier)}`}>
                  {identifier}
                </Link>
              </div>
              <Figures {...{ rows, index, path }} />
              <div role="cell" className="cell-time is-first">
                <Timestamp at={created_at} />
              </div>
              <div role="cell" className="cell-id mono faint">
                {id}
              </div>
            </>
          )}
        />
      )}
    </div>
  )
}

function Figures({ rows, index, path }: { rows: User[]; index: number; path: string[] | undefined }) {
  const figures = useUserFigures(rows, index, path)
  const { identifier } = rows[index]!
  const is_cut = figures !== undefined && figures.sessions >= SESSIONS_COUNTED_MAX
  return (
    <>
      <div role="cell" className="cell-number mono">
        {figures ? (
          <Link to={pathOf({ user: identifier })}>
            {is_cut && '≥ '}
            {countText(figures.sessions)}
            <span className="only-narrow"> {figures.sessions === 1 ? 'session' : 'sessions'}</span>
          </Link>
        ) : (
          <span className="faint">…</span>
        )}
      </div>
      <div role="cell" className={`cell-number mono is-failures ${figures?.failed ? 'is-bad' : ''}`}>
        {figures && (figures.failed > 0 ? `${is_cut ? '≥ ' : ''}${countText(figures.failed)}` : '–')}
        {figures && figures.failed > 0 && <span className="only-narrow"> failed</span>}
      </div>
      <div role="cell" className="cell-time">
        {figures?.last_activity && <Timestamp at={figures.last_activity} />}
      </div>
    </>
  )
}
