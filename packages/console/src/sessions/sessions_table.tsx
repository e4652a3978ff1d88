import type { Session } from '@annals/client'
import { memo } from 'react'
import { Link } from '../address/link.tsx'
import { shortText } from '../json/exact_json.ts'
import { countText, Timestamp } from '../parts/timestamp.tsx'
import { VirtualTable } from '../parts/virtual_table.tsx'
import { type Condition, conditionsOf, type Filter, pathText } from './conditions.ts'
import { outcomeOf } from './outcome.ts'
import { useFacts } from './sessions_query.ts'

const COLUMNS = ['Outcome', 'User', 'Session', 'Configs', 'Entries', 'Created', 'Last activity']
const CHIPS_MAX = 8
const idOf = ({ id }: { id: string }) => id

/** The sessions as rows; only visible ones are rendered. */
export function SessionsTable(props: {
  rows: Session[]
  /** The same in pages; all but the last have the same length. */
  pages: Session[][]
  has_more: boolean
  is_reading: boolean
  failure: unknown
  onMore: () => void
  onUser: (user: string) => void
  onCondition: (condition: Condition) => void
}) {
  const { rows, pages, onUser, onCondition, ...rest } = props
  const per_page = pages[0]?.length || 1
  return (
    <VirtualTable
      {...rest}
      label="Sessions"
      className="sessions-table"
      columns={COLUMNS}
      rows={rows}
      keyOf={idOf}
      linkOf={({ id }) => `/sessions/${id}`}
      renderRow={(session, index) => (
        <SessionCells
          session={session}
          page={pages[Math.floor(index / per_page)]!}
          {...{ onUser, onCondition }}
        />
      )}
    />
  )
}

const SessionCells = memo(function SessionCells(props: {
  session: Session
  page: Session[]
  onUser: (user: string) => void
  onCondition: (condition: Condition) => void
}) {
  const { session, page, onUser, onCondition } = props
  const { user, entries } = useFacts(session, page)
  const outcome = outcomeOf(session.configs)
  const conditions = conditionsOf(session.configs as Filter)
  return (
    <>
      <div role="cell" className="cell-outcome">
        {outcome && (
          <button
            type="button"
            className={`outcome is-${outcome.verdict}`}
            title={`Only sessions with ${pathText(outcome.path)}=${shortText(outcome.value)}`}
            onClick={() => onCondition(outcome)}
          >
            {outcome.verdict}
          </button>
        )}
      </div>
      <div role="cell" className="cell-user">
        {user === undefined ? (
          <span className="faint">{session.user_id ? '…' : 'no user'}</span>
        ) : (
          <button
            type="button"
            className="plain"
            title={`Only sessions of ${user}`}
            onClick={() => onUser(user)}
          >
            {user}
          </button>
        )}
      </div>
      <div role="cell" className="cell-id">
        <Link to={`/sessions/${session.id}`} className="row-link mono" title={session.id}>
          <span className="visually-hidden">Session </span>
          {session.id.slice(0, 4)}…{session.id.slice(-8)}
        </Link>
      </div>
      <div role="cell" className="cell-configs">
        {conditions.slice(0, CHIPS_MAX).map(({ path, value }) => (
          <button
            key={pathText(path)}
            type="button"
            className="chip"
            title={`Only sessions with ${pathText(path)}=${shortText(value)}`}
            onClick={() => onCondition({ path, value })}
          >
            <span className="chip-key">{pathText(path)}</span>{' '}
            {Array.isArray(value) ? `[${value.length}]` : shortText(value)}
          </button>
        ))}
        {conditions.length > CHIPS_MAX && <span className="faint">+{conditions.length - CHIPS_MAX}</span>}
      </div>
      <div role="cell" className="cell-number mono">
        {entries === undefined ? <span className="faint">…</span> : countText(entries)}
        <span className="only-narrow"> entries</span>
      </div>
      <div role="cell" className="cell-time">
        <Timestamp at={session.created_at} />
      </div>
      <div role="cell" className="cell-time is-activity">
        <Timestamp at={session.updated_at} />
      </div>
    </>
  )
})
