import type { Statement, StatementChange } from '@annals/client'
import { useRef, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { useKeys } from '../shell/shortcuts.ts'
import { DECISIONS, useChangeStatement, useChangeStatements } from './change_statement.ts'
import type { State } from './learning_query.ts'
import { StatementCard } from './statement_card.tsx'
import { StatementEditor } from './statement_editor.tsx'

/** Statements in one state: read, approved, edited and rejected, by the keyboard too. */
export function StatementList(props: { space_id: string; state: State; items: Statement[] }) {
  const { space_id, state, items } = props
  const { may_write } = useProject()
  const list = useRef<HTMLOListElement>(null)
  const [current, setCurrent] = useState<string>()
  const [edited, setEdited] = useState<string>()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const changing = useChangeStatement(space_id, state)
  const may = may_write ? DECISIONS[state] : {}

  const at = items.findIndex(({ id }) => id === current)
  const focus = (id: string | undefined) =>
    list.current?.querySelector<HTMLElement>(`[data-statement="${id}"]`)?.focus()
  const choose = (id: string) =>
    setChosen(new Set(chosen.has(id) ? [...chosen].filter((one) => one !== id) : [...chosen, id]))
  const close = (id: string) => {
    setEdited(undefined)
    // Once the editor is gone: removing what has the focus would lose it.
    requestAnimationFrame(() => focus(id))
  }
  const change = (id: string, what: StatementChange) => {
    if (changing.isPending) return
    const here = items.findIndex((one) => one.id === id)
    const next = what.state ? (items[here + 1] ?? items[here - 1])?.id : id
    // Not `onSuccess` of the mutation itself: where the focus goes is this list's affair.
    changing.mutate({ id, change: what }, { onSuccess: () => (what.state ? focus(next) : close(id)) })
  }
  /** For a key: on the statement that has the focus, and once however long it is held. */
  const onCurrent = (is_allowed: unknown, act: (one: Statement) => void) => (event: KeyboardEvent) => {
    const one = items[at]
    if (one && is_allowed && !event.repeat && !edited) act(one)
  }
  useKeys({
    j: () => focus(items[Math.min(at + 1, items.length - 1)]?.id),
    k: () => focus(items[Math.max(at - 1, 0)]?.id),
    o: onCurrent(
      true,
      ({ cites: [cite] }) => cite && navigate(`/sessions/${cite.session_id}?seq=${cite.seq}`),
    ),
    a: onCurrent(may.approve, ({ id }) => change(id, { state: 'active' })),
    r: onCurrent(may.retire, ({ id }) => change(id, { state: 'retired' })),
    x: onCurrent(may.approve, ({ id }) => choose(id)),
    e: onCurrent(may.edit, ({ id }) => setEdited(id)),
  })
  return (
    <>
      {changing.isError && (
        <p className="failure-line" role="alert">
          Not changed: {changing.error.message}
        </p>
      )}
      {may.approve && items.length > 1 && (
        <AllOfThem
          {...{ space_id, state, items, may }}
          chosen={items.filter(({ id }) => chosen.has(id))}
          onChoose={(ids) => setChosen(new Set(ids))}
        />
      )}
      <ol className="statements" aria-label={`Statements: ${state}`} ref={list}>
        {items.map((statement) => (
          <li key={statement.id}>
            <article
              className="card"
              aria-label={statement.text || 'Revoked statement'}
              data-statement={statement.id}
              tabIndex={-1}
              onFocus={() => setCurrent(statement.id)}
            >
              <StatementCard statement={statement}>
                {may.approve && items.length > 1 && (
                  <label className="check">
                    <input
                      type="checkbox"
                      checked={chosen.has(statement.id)}
                      onChange={() => choose(statement.id)}
                    />
                    <span className="visually-hidden">Choose {statement.text}</span>
                  </label>
                )}
              </StatementCard>
              {edited === statement.id ? (
                <StatementEditor
                  statement={statement}
                  is_saving={changing.isPending}
                  onSave={(what) => change(statement.id, what)}
                  onClose={() => close(statement.id)}
                />
              ) : (
                <Decisions
                  may={may}
                  onChange={(what) => change(statement.id, what)}
                  onEdit={() => setEdited(statement.id)}
                />
              )}
            </article>
          </li>
        ))}
      </ol>
    </>
  )
}

/** Decides several statements at once, one after the other; what was not decided stays chosen. */
function AllOfThem(props: {
  space_id: string
  state: State
  items: Statement[]
  chosen: Statement[]
  may: (typeof DECISIONS)[State]
  onChoose: (ids: string[]) => void
}) {
  const { space_id, state, items, chosen, may, onChoose } = props
  const deciding = useChangeStatements(space_id, state)
  const decide = (to: 'active' | 'retired') =>
    deciding.mutate(chosen.map(({ id }) => ({ id, change: { state: to } })))
  const is_all = chosen.length === items.length
  return (
    <div className="decisions" role="group" aria-label="Chosen statements">
      <button
        type="button"
        className="button is-small"
        onClick={() => onChoose(is_all ? [] : items.map(({ id }) => id))}
      >
        {is_all ? 'Choose none' : `Choose all ${items.length}`}
      </button>
      {chosen.length > 0 && (
        <>
          <button
            type="button"
            className="button is-small is-primary"
            disabled={deciding.isPending}
            onClick={() => decide('active')}
          >
            {may.approve} {chosen.length}
          </button>
          {may.retire && (
            <button
              type="button"
              className="button is-small"
              disabled={deciding.isPending}
              onClick={() => decide('retired')}
            >
              {may.retire} {chosen.length}
            </button>
          )}
        </>
      )}
      {deciding.isError && (
        <span className="failure-line" role="alert">
          Not all were changed: {deciding.error.message}
        </span>
      )}
    </div>
  )
}

function Decisions(props: {
  may: (typeof DECISIONS)[State]
  onChange: (change: StatementChange) => void
  onEdit: () => void
}) {
  const { may, onChange, onEdit } = props
  const buttons = [
    ['a', may.approve, () => onChange({ state: 'active' })],
    ['e', may.edit, onEdit],
    ['r', may.retire, () => onChange({ state: 'retired' })],
  ] as const
  return (
    <div className="decisions">
      {buttons.map(
        ([key, label, act]) =>
          label && (
            <button
              key={key}
              type="button"
              className="button is-small"
              aria-keyshortcuts={key}
              title={`Key: ${key}`}
              onClick={act}
            >
              {label}
            </button>
          ),
      )}
    </div>
  )
}
