import type { Session } from '@annals/client'
import { shownOutcome } from '@annals/messages/session'
import { memo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { Link } from '../address/link.tsx'
import { type Json, shortText } from '../json/exact_json.ts'
import { RunStateChip } from '../parts/run_state.tsx'
import { countText, durationText, Timestamp } from '../parts/timestamp.tsx'
import { VirtualTable } from '../parts/virtual_table.tsx'
import { type RunState, useRunStates } from '../runs/runs_query.ts'
import { COLUMNS, type Column } from './columns.tsx'
import { type Condition, type Filter, pathText, tellingConditions } from './conditions.ts'
import { type SessionFacts, useFacts } from './facts_query.ts'

const idOf = ({ id }: { id: string }) => id

/** The sessions as rows; only visible ones are rendered. */
export function SessionsTable(props: {
  rows: Session[]
  /** The same in pages; all but the last have the same length. */
  pages: Session[][]
  columns: Column[]
  /** The member of configs that has a column. */
  configs_key: string
  has_more: boolean
  is_reading: boolean
  failure: unknown
  onMore: () => void
  onUser: (user: string) => void
  onCondition: (condition: Condition) => void
  /** Sessions that are selected; without, none can be. */
  chosen?: readonly string[]
  onChoose?: (id: string) => void
}) {
  const { rows, pages, columns, configs_key, onUser, onCondition, chosen, onChoose, ...rest } = props
  const per_page = pages[0]?.length || 1
  return (
    <VirtualTable
      {...rest}
      label="Sessions"
      className="sessions-table"
      columns={columns.map((column) => (column === 'configs' ? configs_key : COLUMNS[column].name))}
      widths={columns.map((column) => COLUMNS[column].width).join(' ')}
      rows={rows}
      keyOf={idOf}
      linkOf={({ id }) => `/sessions/${id}`}
      renderRow={(session, index) => (
        <SessionCells
          session={session}
          page={pages[Math.floor(index / per_page)]!}
          is_chosen={chosen?.includes(session.id)}
          {...{ columns, configs_key, onUser, onCondition, onChoose }}
        />
      )}
    />
  )
}

interface CellsParts {
  session: Session
  page: Session[]
  columns: Column[]
  configs_key: string
  is_chosen: boolean | undefined
  onChoose: ((id: string) => void) | undefined
  onUser: (user: string) => void
  onCondition: (condition: Condition) => void
}

const SessionCells = memo(function SessionCells({
  session,
  page,
  columns,
  configs_key,
  is_chosen,
  onChoose,
  ...actions
}: CellsParts) {
  const facts = useFacts(session, page)
  const run = useRunStates().get(session.id)
  return columns.map((column) => {
    switch (column) {
      case 'outcome':
        return <OutcomeCell key={column} session={session} {...actions} />
      case 'title':
        return <TitleCell key={column} session={session} facts={facts} {...{ run, is_chosen, onChoose }} />
      case 'user':
        return <UserCell key={column} session={session} facts={facts} {...actions} />
      case 'configs':
        return <ConfigsCell key={column} {...{ session, configs_key }} {...actions} />
      case 'began':
        return <TimeCell key={column} column={column} at={beganAt(session, facts)} />
      case 'created':
        return <TimeCell key={column} column={column} at={session.created_at} />
      case 'activity':
        return <TimeCell key={column} column={column} at={session.updated_at} />
      default:
        return <FigureCell key={column} column={column} figures={facts.figures} />
    }
  })
})

function TimeCell({ column, at }: { column: Column; at: string | undefined }) {
  return (
    <div role="cell" className={`cell-time is-${column}`}>
      {at === undefined ? <span className="faint">…</span> : <Timestamp at={at} />}
    </div>
  )
}

/** A session without entries begins when it is created. */
function beganAt(session: Session, { figures }: SessionFacts): string | undefined {
  return figures && (figures.began_at ?? session.created_at)
}

function OutcomeCell({ session, onCondition }: Pick<CellsParts, 'session' | 'onCondition'>) {
  const outcome = shownOutcome(session.configs, useProject().outcomes)
  return (
    <div role="cell" className="cell-outcome">
      {outcome && (
        <button
          type="button"
          className={`outcome is-${outcome.verdict}`}
          title={`Only sessions with ${pathText(outcome.path)}=${shortText(outcome.value)}`}
          onClick={() => onCondition({ path: outcome.path, value: outcome.value as Json })}
        >
          {outcome.word}
        </button>
      )}
    </div>
  )
}

function TitleCell(
  props: Pick<CellsParts, 'session' | 'is_chosen' | 'onChoose'> & {
    facts: SessionFacts
    run: RunState | undefined
  },
) {
  const { session, facts, run, is_chosen, onChoose } = props
  const { id } = session
  const title = facts.figures?.title
  return (
    <div role="cell" className="cell-id">
      {onChoose && (
        <label className="choose">
          <span className="visually-hidden">Compare {title ?? id}</span>
          <input type="checkbox" checked={is_chosen ?? false} onChange={() => onChoose(id)} />
        </label>
      )}
      <Link to={`/sessions/${id}`} className="row-link" title={title ? `${title}\n${id}` : id}>
        <span className="visually-hidden">Session </span>
        {title ?? (
          <span className="mono">
            {id.slice(0, 4)}…{id.slice(-8)}
          </span>
        )}
      </Link>
      {run && <RunStateChip state={run} />}
    </div>
  )
}

function UserCell(props: { session: Session; facts: SessionFacts; onUser: (user: string) => void }) {
  const { session, facts, onUser } = props
  const { user } = facts
  return (
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
  )
}

function ConfigsCell(props: Pick<CellsParts, 'session' | 'onCondition' | 'configs_key'>) {
  const { session, configs_key, onCondition } = props
  const found = tellingConditions(session.configs as Filter).find(
    ({ path }) => pathText(path) === configs_key,
  )
  const text = found && (Array.isArray(found.value) ? `[${found.value.length}]` : shortText(found.value))
  return (
    <div role="cell" className="cell-configs">
      {found && (
        <button
          type="button"
          className="plain"
          title={`Only sessions with ${configs_key}=${shortText(found.value)}`}
          onClick={() => onCondition(found)}
        >
          {text}
        </button>
      )}
    </div>
  )
}

type FigureColumn = 'entries' | 'duration' | 'tokens' | 'calls' | 'failures'

function FigureCell({ column, figures }: { column: FigureColumn; figures: SessionFacts['figures'] }) {
  const is_bad = column === 'failures' && figures !== undefined && figures.failures > 0
  return (
    <div role="cell" className={`cell-number mono is-${column} ${is_bad ? 'is-bad' : ''}`}>
      {figures === undefined ? <span className="faint">…</span> : figureText(column, figures)}
      {column === 'entries' && (
        <span className="only-narrow"> {figures?.last_seq === 1 ? 'entry' : 'entries'}</span>
      )}
      {is_bad && <span className="only-narrow"> failed</span>}
    </div>
  )
}

function figureText(column: FigureColumn, figures: NonNullable<SessionFacts['figures']>): string {
  const { last_seq, total_tokens, duration_ms, calls, failures, is_whole } = figures
  // Calls are counted up to where the log is read; nothing is said of none so far.
  const least = is_whole ? '' : '≥ '
  switch (column) {
    case 'entries':
      return countText(last_seq)
    case 'duration':
      return duration_ms > 0 ? durationText(duration_ms) : '–'
    case 'tokens':
      return countText(total_tokens)
    case 'calls':
      return calls === 0 && !is_whole ? '…' : `${least}${countText(calls)}`
    case 'failures':
      return failures > 0 ? `${least}${countText(failures)}` : is_whole ? '–' : '…'
  }
}
