import { useState } from 'react'
import { Link } from '../address/link.tsx'
import { countText } from '../parts/timestamp.tsx'
import type { ToolOverview } from './run_figures.ts'

const SHOWN = 10

/** The failed calls of a tool: what it returned, and what the agent said next. */
export function FailedCalls({ tool }: { tool: ToolOverview }) {
  const { name, failed, failures } = tool
  const [shown, setShown] = useState(SHOWN)
  return (
    <section className="failed-calls" aria-label={`Failed calls of ${name}`}>
      <h3>
        <span className="mono">{name}</span> failed {countText(failures)} {failures === 1 ? 'time' : 'times'}.
        After it, the agent said:
      </h3>
      <ol>
        {failed.slice(0, shown).map(({ seq, result, said, run: { session, figures } }) => (
          <li key={`${session.id} ${seq}`}>
            <p>
              <Link to={`/sessions/${session.id}?seq=${seq}`}>{figures?.title ?? session.id}</Link>{' '}
              <span className="seq mono">{seq}</span>
            </p>
            <p className="is-bad mono">{result || 'no text'}</p>
            {said ? (
              <blockquote>
                {said.text} <Link to={`/sessions/${session.id}?seq=${said.seq}`}>entry {said.seq}</Link>
              </blockquote>
            ) : (
              <p className="faint">Nothing more.</p>
            )}
          </li>
        ))}
      </ol>
      {failed.length > shown && (
        <button type="button" className="button is-small" onClick={() => setShown(shown + 5 * SHOWN)}>
          {countText(failed.length - shown)} more
        </button>
      )}
    </section>
  )
}
