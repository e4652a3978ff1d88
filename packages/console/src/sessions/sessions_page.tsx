import type { Session } from '@annals/client'
import { type OutcomeWords, outcomeOf } from '@annals/messages/session'
import { useCallback, useMemo, useRef, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { Fold } from '../parts/fold.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { type Column, ColumnsMenu, useColumns, useConfigsKeys } from './columns.tsx'
import {
  type Condition,
  conditionsOf,
  filterText,
  hasCondition,
  readFilter,
  withCondition,
  withoutCondition,
} from './conditions.ts'
import { EmptyProject } from './empty_project.tsx'
import { Facets } from './facets.tsx'
import { FilterBar } from './filter_bar.tsx'
import { OverTimeChart } from './over_time_chart.tsx'
import { SavedViews } from './saved_views.tsx'
import { type SessionsView, useNewest, useReadAnew, useSessions } from './sessions_query.ts'
import { SessionsTable } from './sessions_table.tsx'
import { isLimited, readTimeRange, TimeRangeField } from './time_range.tsx'
import { useKnownUsers } from './user_field.tsx'

const ALIKE_MAX = 8

/** All sessions of the project, or those that match a filter. */
export function SessionsPage() {
  usePageTitle('Sessions')
  const { query } = useAddress()
  const view = useMemo<SessionsView>(
    () => ({
      user: query.get('user') ?? undefined,
      filter: readFilter(query.get('filter')),
      oldest_first: query.get('order') === 'oldest',
      range: readTimeRange(query),
    }),
    [query],
  )
  const columns_text = query.get('columns')
  const columns = useColumns(columns_text)
  const key_text = query.get('key')
  const shown = { ...view, columns: columns_text ?? undefined, key: key_text ?? undefined }
  const show = (change: Partial<ListAddress>) => navigate(pathOf({ ...shown, ...change }))
  const sessions = useSessions(view)
  const readAnew = useReadAnew(view)
  const pages = useMemo(() => sessions.data?.pages.map(({ items }) => items) ?? [], [sessions.data])
  const rows = useMemo(() => pages.flat(), [pages])
  const keys = useConfigsKeys(rows)
  const configs_key = key_text ?? keys[0] ?? 'agent'
  const newest = useNewest(view)
  const is_filtered = view.user !== undefined || conditionsOf(view.filter).length > 0 || isLimited(view.range)
  const { outcomes } = useProject()
  const outcome_path = useMemo(() => outcomePathOf(rows, outcomes), [rows, outcomes])
  const has_new =
    !view.oldest_first && newest.data && rows[0] && newest.data !== rows[0].id && !sessions.isFetching
  const [chosen, setChosen] = useState<string[]>([])
  const choose = useCallback(
    (id: string) =>
      setChosen((ids) => (ids.includes(id) ? ids.filter((one) => one !== id) : [...ids.slice(-1), id])),
    [],
  )
  const toggle = (condition: Condition) =>
    show({
      filter: hasCondition(view.filter, condition)
        ? withoutCondition(view.filter, condition.path)
        : withCondition(view.filter, condition),
    })

  return (
    <div className="page is-list">
      <div className="page-head">
        <h1>Sessions</h1>
        <CompareButton chosen={chosen} />
        <Fold label="View">
          <SavedViews path={pathOf(shown)} />
          <ColumnsMenu
            {...{ columns, keys, configs_key }}
            onChange={(some) => show({ columns: some?.join() })}
            onKey={(key) => show({ key })}
          />
          <TimeRangeField range={view.range} onChange={(range) => show({ range })} />
          <OrderSwitch view={view} onChange={(oldest_first) => show({ oldest_first })} />
        </Fold>
        {has_new && (
          <button type="button" className="button is-primary is-small" onClick={() => void readAnew()}>
            Show new sessions
          </button>
        )}
      </div>
      <OverTimeChart view={view} path={outcome_path} />
      <Fold label="Filter">
        {(rows.length > 0 || is_filtered || sessions.isPending || sessions.isPlaceholderData) && (
          <FilterBar view={view} rows={rows} onChange={show} />
        )}
        <Facets rows={rows} view={view} has_more={sessions.hasNextPage} onToggle={toggle} />
      </Fold>
      <SessionsList
        {...{ rows, pages, view, columns, configs_key, toggle, is_filtered, chosen }}
        onChoose={choose}
        state={sessions}
        onUser={(user) => show({ user: view.user === user ? undefined : user })}
        onClear={() => show({ user: undefined, filter: {}, range: {} })}
      />
    </div>
  )
}

function SessionsList(props: {
  rows: Session[]
  pages: Session[][]
  state: ReturnType<typeof useSessions>
  view: SessionsView
  columns: Column[]
  configs_key: string
  is_filtered: boolean
  chosen: string[]
  onChoose: (id: string) => void
  toggle: (condition: Condition) => void
  onUser: (user: string) => void
  onClear: () => void
}) {
  const { rows, pages, state, view, columns, configs_key, is_filtered, toggle } = props
  const { onUser, onClear, chosen, onChoose } = props
  const { isPlaceholderData: is_before } = state
  const shown = useRef('')
  if (!is_before) shown.current = pathOf(view)
  if (state.isPending || (is_before && rows.length === 0)) return <Loading what="sessions" />
  if (state.isError && rows.length === 0)
    return <Failure error={state.error} onRetry={() => void state.refetch()} />
  if (rows.length === 0 && !is_filtered) return <EmptyProject onFilled={() => void state.refetch()} />
  if (rows.length === 0) {
    return <NothingFits {...{ view, onUser, onClear }} />
  }
  return (
    <SessionsTable
      key={shown.current}
      rows={rows}
      pages={pages}
      {...{ columns, configs_key, chosen, onChoose }}
      has_more={state.hasNextPage && !is_before}
      is_reading={state.isFetchingNextPage}
      onMore={() => void state.fetchNextPage()}
      onUser={onUser}
      onCondition={toggle}
      failure={state.isError ? state.error : undefined}
    />
  )
}

/** Leads to the comparison as soon as two sessions are selected. */
function CompareButton({ chosen: [a, b] }: { chosen: string[] }) {
  if (a === undefined) return null
  return b === undefined ? (
    <span className="hint" role="status">
      Select one more session to compare
    </span>
  ) : (
    <Link className="button is-primary is-small" to={withQuery('/compare', { a, b })}>
      Compare
    </Link>
  )
}

function NothingFits(props: { view: SessionsView; onUser: (user: string) => void; onClear: () => void }) {
  const { view, onUser, onClear } = props
  const user = view.user?.toLowerCase()
  const alike = useKnownUsers(user !== undefined)
    .filter((name) => name !== view.user && name.toLowerCase().includes(user!))
    .slice(0, ALIKE_MAX)
  const has_conditions = conditionsOf(view.filter).length > 0
  return (
    <Empty title="No session matches this filter">
      {view.user !== undefined && (
        <p>
          There is no user “{view.user}”, or they have no session{has_conditions && ' with these configs'}.
          Names must match exactly; search for a part of a name in <Link to="/users">Users</Link>.
        </p>
      )}
      {alike.length > 0 && (
        <p className="alike">
          Users with similar names:{' '}
          {alike.map((name) => (
            <button key={name} type="button" className="button is-small" onClick={() => onUser(name)}>
              {name}
            </button>
          ))}
        </p>
      )}
      {has_conditions && <p>Types matter: the number 1 is not the text “1”.</p>}
      <button type="button" className="button" onClick={onClear}>
        Show all sessions
      </button>
    </Empty>
  )
}

function OrderSwitch({ view, onChange }: { view: SessionsView; onChange: (oldest_first: boolean) => void }) {
  return (
    <label className="order">
      <span className="visually-hidden">Order</span>
      <select
        value={view.oldest_first ? 'oldest' : 'newest'}
        onChange={(event) => onChange(event.target.value === 'oldest')}
      >
        <option value="newest">Newest first</option>
        <option value="oldest">Oldest first</option>
      </select>
    </label>
  )
}

/** Where the first of the rows that tells its outcome has it in configs. */
export function outcomePathOf(rows: Session[], words: OutcomeWords | undefined): string[] | undefined {
  for (const { configs } of rows.slice(0, 100)) {
    const outcome = outcomeOf(configs, words)
    if (outcome) return outcome.path
  }
  return undefined
}

/** What the address of the list says. */
interface ListAddress extends SessionsView {
  columns: string | undefined
  /** The member of configs that has a column. */
  key: string | undefined
}

/** The address of a view. */
export function pathOf(view: Partial<ListAddress>): string {
  const { user, filter, oldest_first, range, columns, key } = view
  return withQuery('/sessions', {
    user,
    filter: filter && filterText(filter),
    order: oldest_first ? 'oldest' : undefined,
    last: range?.last,
    from: range?.from,
    to: range?.to,
    columns,
    key,
  })
}
