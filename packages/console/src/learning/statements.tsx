import { navigate, useAddress, withQuery } from '../address/address.ts'
import { Failure, Loading } from '../parts/states.tsx'
import { countText } from '../parts/timestamp.tsx'
import { HowToBegin } from './how_to_begin.tsx'
import { STATES, type State, useSpaceSessions, useStatements } from './learning_query.ts'
import { MoreButton } from './more_button.tsx'
import { StatementCard } from './statement_card.tsx'

const NAMES = Object.keys(STATES) as State[]

/** What a space has learnt, by state. The state is in the address. */
export function Statements({ space_id }: { space_id: string }) {
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
      <p className="hint">{STATES[state]}</p>
      <StatementList key={state} {...{ space_id, state }} />
    </section>
  )
}

function StateButton(props: { space_id: string; name: State; is_shown: boolean; onShow: () => void }) {
  const { space_id, name, is_shown, onShow } = props
  const { items, hasNextPage, isSuccess } = useStatements(space_id, name)
  return (
    <button type="button" className="button is-small" aria-pressed={is_shown} onClick={onShow}>
      {name[0]!.toUpperCase() + name.slice(1)}{' '}
      <span className="mono">{isSuccess && countText(items.length) + (hasNextPage ? '+' : '')}</span>
    </button>
  )
}

function StatementList({ space_id, state }: { space_id: string; state: State }) {
  const statements = useStatements(space_id, state)
  const { items, isPending, error } = statements
  if (isPending) return <Loading what="statements" />
  if (error && items.length === 0) return <Failure error={error} onRetry={() => void statements.refetch()} />
  return (
    <>
      {items.length === 0 && <Nothing {...{ space_id, state }} />}
      <ol className="statements" aria-label={`Statements: ${state}`}>
        {items.map((statement) => (
          <li key={statement.id}>
            <article className="card" aria-label={statement.text || 'Revoked statement'}>
              <StatementCard statement={statement} />
            </article>
          </li>
        ))}
      </ol>
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

function stateText(state: State): string {
  return state === 'conflict' ? 'in conflict' : state
}
