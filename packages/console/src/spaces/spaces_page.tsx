import { useInfiniteQuery } from '@tanstack/react-query'
import { type FormEvent, useMemo, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { shortText } from '../json/exact_json.ts'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { Timestamp } from '../parts/timestamp.tsx'
import { VirtualTable } from '../parts/virtual_table.tsx'
import {
  conditionsOf,
  type Filter,
  pathText,
  readFilter,
  withCondition,
  withoutCondition,
} from '../sessions/conditions.ts'
import { useIdentifier } from '../sessions/facts_query.ts'
import { NewSpaceDialog } from './new_space_dialog.tsx'
import { spaceName } from './space_name.ts'

const CHIPS_MAX = 8
const idOf = ({ id }: { id: string }) => id

/** Learning spaces of the project and of its users. */
export function SpacesPage() {
  usePageTitle('Learning spaces')
  const { annals, project_id, may_write } = useProject()
  const { query } = useAddress()
  const [creates, setCreates] = useState(false)
  const user = query.get('user') ?? undefined
  const filter = useMemo(() => readFilter(query.get('filter')), [query])
  const conditions = conditionsOf(filter)
  const show = (change: { user?: string | undefined; filter?: Filter }) => {
    const next = { user, filter, ...change }
    const text = Object.keys(next.filter).length > 0 ? JSON.stringify(next.filter) : undefined
    navigate(withQuery('/spaces', { user: next.user, filter: text }))
  }
  const spaces = useInfiniteQuery({
    queryKey: [project_id, 'spaces', user, filter],
    queryFn: ({ pageParam, signal }) =>
      annals.learningSpaces
        .list({ user, filter_by_meta: filter, limit: 100, time_desc: true }, { signal })
        .page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    structuralSharing: false,
  })
  const pages = useMemo(() => spaces.data?.pages.map(({ items }) => items) ?? [], [spaces.data])
  const rows = useMemo(() => pages.flat(), [pages])
  const per_page = pages[0]?.length || 1
  const create_button = may_write && (
    <button type="button" className="button is-primary" onClick={() => setCreates(true)}>
      New learning space
    </button>
  )
  return (
    <div className="page is-list">
      <div className="page-head">
        <h1>Learning spaces</h1>
        <UserSearch user={user} onChange={(next) => show({ user: next })} />
        {rows.length > 0 && create_button}
      </div>
      {conditions.length > 0 && (
        <div className="filter-line">
          {conditions.map(({ path, value }) => (
            <span key={pathText(path)} className="condition">
              <span>
                <span className="condition-key">{pathText(path)}</span> = {shortText(value)}
              </span>
              <button
                type="button"
                aria-label={`Remove the condition on ${pathText(path)}`}
                onClick={() => show({ filter: withoutCondition(filter, path) })}
              >
                ✕
              </button>
            </span>
          ))}
        </div>
      )}
      {spaces.isPending ? (
        <Loading what="learning spaces" />
      ) : spaces.isError && rows.length === 0 ? (
        <Failure error={spaces.error} onRetry={() => void spaces.refetch()} />
      ) : rows.length === 0 ? (
        <Empty
          title={
            user || conditions.length > 0 ? 'No learning space matches this filter' : 'No learning spaces yet'
          }
        >
          <p>A learning space holds what was learned, for a user or for the whole project.</p>
          {user || conditions.length > 0 ? (
            <button type="button" className="button" onClick={() => show({ user: undefined, filter: {} })}>
              Show all
            </button>
          ) : (
            create_button
          )}
        </Empty>
      ) : (
        <VirtualTable
          label="Learning spaces"
          className="spaces-table"
          columns={['User', 'Space', 'Meta', 'Created', 'Changed']}
          rows={rows}
          keyOf={idOf}
          linkOf={({ id }) => `/spaces/${id}`}
          has_more={spaces.hasNextPage}
          is_reading={spaces.isFetchingNextPage}
          failure={spaces.isError ? spaces.error : undefined}
          onMore={() => void spaces.fetchNextPage()}
          renderRow={({ id, user_id, meta, created_at, updated_at }, index) => (
            <>
              <div role="cell" className="cell-user">
                <Owner user_id={user_id} page={pages[Math.floor(index / per_page)]!} />
              </div>
              <div role="cell" className="cell-id">
                <Link className="row-link" to={`/spaces/${id}`} title={id}>
                  <span className="visually-hidden">Learning space </span>
                  {spaceName(meta) ?? (
                    <span className="mono">
                      {id.slice(0, 4)}…{id.slice(-8)}
                    </span>
                  )}
                </Link>
              </div>
              <div role="cell" className="cell-configs">
                {conditionsOf(meta as Filter)
                  // The name of the space says this already.
                  .filter(({ value }) => value !== spaceName(meta))
                  .slice(0, CHIPS_MAX)
                  .map(({ path, value }) => (
                    <button
                      key={pathText(path)}
                      type="button"
                      className="chip"
                      title="Click to show only these"
                      onClick={() => show({ filter: withCondition(filter, { path, value }) })}
                    >
                      <span className="chip-key">{pathText(path)}</span>{' '}
                      {Array.isArray(value) ? `[${value.length}]` : shortText(value)}
                    </button>
                  ))}
              </div>
              <div role="cell" className="cell-time">
                <Timestamp at={created_at} />
              </div>
              <div role="cell" className="cell-time is-activity">
                <Timestamp at={updated_at} />
              </div>
            </>
          )}
        />
      )}
      <NewSpaceDialog is_open={creates} user={user} onClose={() => setCreates(false)} />
    </div>
  )
}

function Owner({ user_id, page }: { user_id: string | null; page: Array<{ user_id: string | null }> }) {
  const user = useIdentifier(user_id, page)
  return user_id ? <span>{user ?? '…'}</span> : <span className="faint">project</span>
}

function UserSearch({
  user,
  onChange,
}: {
  user: string | undefined
  onChange: (user: string | undefined) => void
}) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    onChange(String(new FormData(event.currentTarget).get('user')).trim() || undefined)
  }
  return (
    <form className="search" role="search" onSubmit={submit} key={user}>
      <label>
        <span className="visually-hidden">User</span>
        <input
          data-search
          name="user"
          type="search"
          defaultValue={user}
          placeholder="User’s identifier"
          spellCheck={false}
          autoComplete="off"
        />
      </label>
    </form>
  )
}
