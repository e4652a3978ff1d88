import type { Session } from '@annals/client'
import { useState } from 'react'
import { shortText } from '../json/exact_json.ts'
import { CopyButton } from '../parts/copy_button.tsx'
import { ConditionForm } from './condition_form.tsx'
import { type Condition, conditionsOf, pathText, withCondition, withoutCondition } from './conditions.ts'
import type { SessionFilter } from './sessions_query.ts'
import { UserField } from './user_field.tsx'

/** Filters by user and configs, and shows the filter's JSON for the API. */
export function FilterBar(props: {
  view: SessionFilter
  rows: Session[]
  onChange: (change: Partial<SessionFilter>) => void
}) {
  const { view, rows, onChange } = props
  const [edited, setEdited] = useState<Condition | 'new'>()
  const conditions = conditionsOf(view.filter)
  const json = JSON.stringify(view.filter)
  const add = (condition: Condition) => {
    const rest = typeof edited === 'object' ? withoutCondition(view.filter, edited.path) : view.filter
    onChange({ filter: withCondition(rest, condition) })
    setEdited(undefined)
  }
  return (
    <section className="filter" aria-label="Filter">
      <div className="filter-line">
        <UserField user={view.user} onChange={(user) => onChange({ user })} />
        {conditions.map((condition) => (
          <span key={JSON.stringify(condition.path)} className="condition">
            <button type="button" onClick={() => setEdited(condition)} title="Change this condition">
              <span className="condition-key">{pathText(condition.path)}</span>
              <span aria-hidden="true"> = </span>
              <span className={`json-${typeof condition.value}`}>
                {typeof condition.value === 'string' ? `“${condition.value}”` : shortText(condition.value)}
              </span>
            </button>
            <button
              type="button"
              aria-label={`Remove the condition on ${pathText(condition.path)}`}
              onClick={() => onChange({ filter: withoutCondition(view.filter, condition.path) })}
            >
              ✕
            </button>
          </span>
        ))}
        {edited === undefined && (
          <button type="button" className="button is-small" onClick={() => setEdited('new')}>
            + Configs
          </button>
        )}
        {conditions.length > 0 && (
          <span className="filter-json">
            <code title="filter_by_configs">{json}</code>
            <CopyButton what="the filter" text={() => json}>
              Copy
            </CopyButton>
          </span>
        )}
        {(conditions.length > 0 || view.user !== undefined) && (
          <button
            type="button"
            className="button is-small is-quiet"
            onClick={() => onChange({ user: undefined, filter: {} })}
          >
            Clear
          </button>
        )}
      </div>
      {edited !== undefined && (
        <ConditionForm
          key={edited === 'new' ? 'new' : JSON.stringify(edited.path)}
          condition={edited === 'new' ? undefined : edited}
          rows={rows}
          onDone={add}
          onCancel={() => setEdited(undefined)}
        />
      )}
    </section>
  )
}
