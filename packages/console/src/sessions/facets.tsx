import type { Session } from '@annals/client'
import { type OutcomeWords, outcomeOf } from '@annals/messages/session'
import { useMemo } from 'react'
import { useProject } from '../access/project_context.tsx'
import { ExactNumber, shortText } from '../json/exact_json.ts'
import { countText } from '../parts/timestamp.tsx'
import { type Condition, type Filter, hasCondition, pathText, tellingConditions } from './conditions.ts'
import type { SessionsView } from './sessions_query.ts'

const VALUES_MAX = 6
const FACETS_MAX = 14
const ROWS_MAX = 1_000

interface Facet extends Condition {
  sessions: number
  verdict: 'failed' | 'passed' | undefined
}

/** The values that distinguish the listed sessions, one click each; outcomes come first. */
export function Facets(props: {
  rows: Session[]
  view: SessionsView
  /** Whether the list continues after the rows. */
  has_more: boolean
  onToggle: (condition: Condition) => void
}) {
  const { rows, view, has_more, onToggle } = props
  const { outcomes } = useProject()
  const counted = Math.min(rows.length, ROWS_MAX)
  // Rows beyond the counted ones change nothing here.
  const facets = useMemo(
    () => facetsOf(rows.slice(0, ROWS_MAX), outcomes),
    [rows[0], rows[counted - 1], outcomes],
  )
  const title =
    has_more || rows.length > ROWS_MAX
      ? `In the ${countText(counted)} ${view.oldest_first ? 'oldest' : 'newest'}`
      : 'In this list'
  if (facets.length === 0) return null
  return (
    <div className="facets" role="group" aria-label="Values in this list">
      <span className="facets-title">{title}</span>
      {facets.map((facet) => (
        <button
          key={JSON.stringify([facet.path, facet.value])}
          type="button"
          className={`facet ${facet.verdict ? `is-${facet.verdict}` : ''}`}
          aria-pressed={hasCondition(view.filter, facet)}
          title={`Only sessions with ${pathText(facet.path)}=${shortText(facet.value)}: ${facet.sessions} of the ${counted} loaded`}
          onClick={() => onToggle({ path: facet.path, value: facet.value })}
        >
          {facet.verdict && <b>{facet.verdict}</b>} <span className="facet-key">{pathText(facet.path)}</span>{' '}
          {shortText(facet.value)} <span className="facet-count">{facet.sessions}</span>
        </button>
      ))}
    </div>
  )
}

/** Keys with an outcome, or with a few values of which some row shares one: an id of its own tells no rows apart. */
function facetsOf(rows: Session[], words: OutcomeWords | undefined): Facet[] {
  const keys = new Map<string, Map<string, Facet>>()
  for (const { configs } of rows) {
    const outcome = outcomeOf(configs, words)
    for (const { path, value } of tellingConditions(configs as Filter)) {
      if (typeof value === 'object' && value !== null && !(value instanceof ExactNumber)) continue
      const name = pathText(path)
      const values = keys.get(name) ?? new Map<string, Facet>()
      keys.set(name, values)
      const text = JSON.stringify(value)
      const verdict = outcome && pathText(outcome.path) === name ? outcome.verdict : undefined
      const facet = values.get(text) ?? { path, value, sessions: 0, verdict }
      facet.sessions += 1
      values.set(text, facet)
    }
  }
  return [...keys.values()]
    .filter(
      (values) =>
        values.size <= VALUES_MAX &&
        [...values.values()].some(
          ({ verdict, sessions }) => verdict !== undefined || (values.size > 1 && sessions > 1),
        ),
    )
    .sort((a, b) => weightOf(b) - weightOf(a))
    .flatMap((values) => [...values.values()].sort((a, b) => weightOfOne(b) - weightOfOne(a)))
    .slice(0, FACETS_MAX)
}

function weightOf(values: Map<string, Facet>): number {
  const facets = [...values.values()]
  return (
    (facets.some(({ verdict }) => verdict) ? 1e9 : 0) +
    facets.reduce((sum, { sessions }) => sum + sessions, 0)
  )
}

function weightOfOne({ verdict, sessions }: Facet): number {
  return (verdict === 'failed' ? 1e9 : 0) + sessions
}
