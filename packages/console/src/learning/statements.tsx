import { Fragment, useEffect } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { countOfRead } from '../parts/timestamp.tsx'
import { DECISIONS } from './change_statement.ts'
import { HowToBegin } from './how_to_begin.tsx'
import { STATES, type State, useSpaceSessions, useStatements } from './learning_query.ts'
import { MoreButton } from './more_button.tsx'
import { StatementList } from './statement_list.tsx'

const NAMES = Object.keys(STATES) as State[]

/** What a space has learnt, by state. The state is in the address. */
export function Statements({ space_id }: { space_id: string }) {
  const { may_write } = useProject()
  const { path, query } = useAddress()
  const state = NAMES.find((name) => name === query.get('state')) ?? 'proposed'
  return (
    <section className="learnt" aria-label="Statements">
      <h2>Statements</h2>
      <fieldset className="states">
        <legend className="visually-hidden">State</legend>
        {NAMES.map((name) => (
          <StateButton
            key={name}
            {...{ space_id, name }}
            is_shown={name === state}
            onShow={() => navigate(withQuery(path, { state: name }), { replace: true })}
          />
        ))}
      </fieldset>
      <p className="hint">
        {STATES[state]} Keys: <kbd>j</kbd> <kbd>k</kbd> next and previous, <kbd>o</kbd> its entry
        {may_write && keysText(state)}
      </p>
      <Shown key={state} {...{ space_id, state }} />
    </section>
  )
}

function StateButton(props: { space_id: string; name: State; is_shown: boolean; onShow: () => void }) {
  const { space_id, name, is_shown, onShow } = props
  const { items, hasNextPage, isSuccess } = useStatements(space_id, name)
  return (
    <button type="button" className="button is-small" aria-pressed={is_shown} onClick={onShow}>
      {name[0]!.toUpperCase() + name.slice(1)}{' '}
      <span className="mono">{isSuccess && countOfRead(items.length, hasNextPage)}</span>
    </button>
  )
}

function Shown({ space_id, state }: { space_id: string; state: State }) {
  const statements = useStatements(space_id, state)
  const { items, isPending, error, hasNextPage, isFetching, fetchNextPage } = statements
  // Deciding may empty the pages that were read.
  const is_used_up = items.length === 0 && hasNextPage
  useEffect(() => {
    if (is_used_up && !isFetching) void fetchNextPage()
  }, [is_used_up, isFetching, fetchNextPage])
  if (isPending || is_used_up) return <Loading what="statements" />
  if (error && items.length === 0) return <Failure error={error} onRetry={() => void statements.refetch()} />
  return (
    <>
      {items.length === 0 && <Nothing {...{ space_id, state }} />}
      <StatementList {...{ space_id, state, items }} />
      <MoreButton list={statements} />
    </>
  )
}

/** Why there is nothing: the space has no sessions, has nothing to say, or has it in another state. */
function Nothing({ space_id, state }: { space_id: string; state: State }) {
  const sessions = useSpaceSessions(space_id)
  if (sessions.data?.length === 0) return <HowToBegin space_id={space_id} />
  if (state !== 'proposed') return <p className="faint">No statement is {stateText(state)}.</p>
  return (
    <p className="faint">
      Nothing waits for a person. Rules propose a statement within seconds when a call of a tool fails in a
      session of this space.
    </p>
  )
}

/** The keys that decide in a state. */
function keysText(state: State) {
  const { approve, edit, retire } = DECISIONS[state]
  const keys = Object.entries({ a: approve, e: edit, r: retire, x: approve && 'Choose' })
  return keys.map(
    ([key, label]) =>
      label && (
        <Fragment key={key}>
          , <kbd>{key}</kbd> {label.toLowerCase()}
        </Fragment>
      ),
  )
}

function stateText(state: State): string {
  return state === 'conflict' ? 'in conflict' : state
}
