import { AnnalsError } from '@annals/client'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Fold } from '../parts/fold.tsx'
import { usePageTitle } from '../parts/page_title.ts'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import { filterText, readFilter } from '../sessions/conditions.ts'
import { FilterBar } from '../sessions/filter_bar.tsx'
import { type SessionFilter, useSessions } from '../sessions/sessions_query.ts'
import { readTimeRange, type TimeRange, TimeRangeField, timesOf } from '../sessions/time_range.tsx'
import { ClosestSessions, FoundEntries } from './found.tsx'
import { SearchOff } from './search_off.tsx'

const PAGE = 50
/** Where fewer were found, the next page is read without asking: it may be short or empty although more follows. */
const FEW = 20
const INDEXING_MS = 1_500
/** Their configs are offered as filters. */
const NEWEST_SESSIONS = { user: undefined, filter: {}, oldest_first: false, range: {} }

/** Sessions that are shown where no entry has all of the words. */
const CLOSEST = 10

/** Entries of all sessions that match a query, or else what comes closest. */
export function SearchPage() {
  const { query } = useAddress()
  const q = query.get('q') ?? ''
  usePageTitle(q, 'Search')
  const { annals, project_id } = useProject()
  const range = readTimeRange(query)
  const order = query.get('order') === 'relevance' ? 'relevance' : 'newest'
  const sessions: SessionFilter = {
    user: query.get('user') ?? undefined,
    filter: readFilter(query.get('filter')),
  }
  const is_filtered = sessions.user !== undefined || filterText(sessions.filter) !== undefined
  const newest = useSessions(NEWEST_SESSIONS)
  const rows = useMemo(() => newest.data?.pages[0]?.items ?? [], [newest.data])
  const show = (change: { range?: TimeRange; order?: string } & Partial<SessionFilter>) => {
    const next = { range, order, ...sessions, ...change }
    navigate(
      withQuery('/search', {
        q,
        ...next.range,
        order: next.order,
        user: next.user,
        filter: filterText(next.filter),
      }),
    )
  }
  const times = timesOf(range)
  const only = { ...times, user: sessions.user, filter_by_configs: sessions.filter }
  const found = useInfiniteQuery({
    queryKey: [project_id, 'search', q, order, times, sessions],
    enabled: q !== '',
    queryFn: ({ pageParam, signal }) =>
      annals.search(q, { ...only, order, noise: false, limit: PAGE }, { signal }).page(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page.has_more ? page.next_cursor : undefined),
    refetchInterval: ({ state }) => (state.data?.pages[0]?.indexing ? INDEXING_MS : false),
  })
  const items = useMemo(() => found.data?.pages.flatMap((page) => page.items) ?? [], [found.data])
  const { hasNextPage, isFetching, isError, fetchNextPage } = found
  useEffect(() => {
    if (items.length < FEW && hasNextPage && !isFetching && !isError) void fetchNextPage()
  }, [items.length, hasNextPage, isFetching, isError, fetchNextPage])
  const finds_nothing = found.isSuccess && items.length === 0 && !hasNextPage
  const closest = useQuery({
    queryKey: [project_id, 'search', 'closest', q, times, sessions],
    enabled: finds_nothing,
    queryFn: ({ signal }) => annals.recall(q, { ...only, limit: CLOSEST }, { signal }),
    refetchInterval: ({ state }) => (state.data?.indexing ? INDEXING_MS : false),
  })
  const is_off = found.error instanceof AnnalsError && found.error.error === 'search_off'
  if (is_off) return <SearchOff onSwitched={() => void found.refetch()} />
  const indexing = found.data?.pages[0]?.indexing
  return (
    <div className="page">
      <div className="page-head">
        <h1>Search</h1>
        <TimeRangeField range={range} onChange={(next) => show({ range: next })} />
        <label className="order">
          <span className="visually-hidden">Order</span>
          <select value={order} onChange={({ target }) => show({ order: target.value })}>
            <option value="newest">Newest first</option>
            <option value="relevance">Best first</option>
          </select>
        </label>
      </div>
      <Fold label="Filter">
        <FilterBar view={sessions} rows={rows} onChange={show} />
      </Fold>
      <p className="hint">
        Words, <code>"words in this order"</code>, <code>-without</code>, <code>begin*</code>
      </p>
      {indexing && (
        <p className="hint" role="status">
          Indexing: {countText(indexing.sessions_done)} of {countText(indexing.sessions)} sessions so far
        </p>
      )}
      {q === '' ? (
        <Empty title="What are you looking for?">
          <p>Type words above, or press / on any page.</p>
        </Empty>
      ) : found.isPending || (items.length === 0 && hasNextPage && !isError) ? (
        <Loading what="what matches" />
      ) : isError && items.length === 0 ? (
        <Failure error={found.error} onRetry={() => void found.refetch()} />
      ) : items.length > 0 ? (
        <FoundEntries items={items} q={q} />
      ) : closest.isPending ? (
        <Loading what="what comes closest" />
      ) : closest.isError ? (
        <Failure error={closest.error} onRetry={() => void closest.refetch()} />
      ) : closest.data.items.length > 0 ? (
        <ClosestSessions items={closest.data.items} />
      ) : (
        <Empty title={`Nothing matches “${q}”`}>
          <p>
            {is_filtered && 'Only the sessions of the filter were searched. '}
            Words must match whole: write <code>refund*</code> to find refunds as well.
          </p>
          {/\bOR\b/.test(q) && (
            <p>There is no OR: an entry must have all words. Search for each by itself.</p>
          )}
        </Empty>
      )}
      {hasNextPage && items.length > 0 && (
        <p>
          <button
            type="button"
            className="button"
            disabled={found.isFetchingNextPage}
            onClick={() => void fetchNextPage()}
          >
            {found.isFetchingNextPage ? 'Searching…' : 'Show more'}
          </button>
        </p>
      )}
    </div>
  )
}
