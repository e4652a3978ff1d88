import type { Statement } from '@annals/client'
import { type ReactNode, useState } from 'react'
import { Link } from '../address/link.tsx'
import { countText, Timestamp } from '../parts/timestamp.tsx'

const CITES_SHOWN = 3
const AUTHORS = { rule: 'found by rules', model: 'worded by a model', person: 'written by a person' }

/** A statement: what it says, who worded it, what supports it, and the entries that it cites. */
export function StatementCard({ statement, children }: { statement: Statement; children?: ReactNode }) {
  const { kind, skill, author, pinned, supports, contradicts, state, text, updated_at } = statement
  return (
    <>
      <p className="card-head statement-head">
        {children}
        <span className="tag">{kind}</span>
        {skill && <span className="mono">{skill}</span>}
        <span>{AUTHORS[author]}</span>
        {pinned && (
          <span title="A person wrote, edited or approved it: nothing else rewords it.">pinned</span>
        )}
        <Timestamp at={updated_at} />
      </p>
      {state === 'revoked' ? (
        <p className="faint">Its text is gone: the sessions that it rested on were deleted.</p>
      ) : (
        <p className="statement-text">{withCode(text)}</p>
      )}
      <p className="statement-head">
        <span>{sessionsText(supports)} it</span>
        {contradicts > 0 && (
          <span className="is-bad">{sessionsText(contradicts, 'contradict', 'contradicts')} it</span>
        )}
        {statement.used > 0 && (
          <span>
            helped {countText(statement.helped)} of {countText(statement.used)}
          </span>
        )}
      </p>
      <Cites statement={statement} />
    </>
  )
}

/** Names in backquotes, as rules and models write them, in the fixed font. */
function withCode(text: string): ReactNode {
  const parts = text.split('`')
  if (parts.length % 2 === 0) return text
  return parts.map((part, index) => (index % 2 === 0 ? part : <code key={`${index} ${part}`}>{part}</code>))
}

function sessionsText(count: number, many = 'support', one = 'supports'): string {
  return count === 1 ? `1 session ${one}` : `${countText(count)} sessions ${many}`
}

/** The entries that a statement cites, one click away. */
function Cites({ statement: { cites } }: { statement: Statement }) {
  const [is_whole, setWhole] = useState(false)
  const shown = is_whole ? cites : cites.slice(0, CITES_SHOWN)
  return (
    <>
      {cites.length > 0 && (
        <ul className="cites">
          {shown.map(({ session_id, seq, quote, polarity }) => (
            <li key={`${session_id} ${seq} ${quote}`}>
              <Link
                className="mono"
                to={`/sessions/${session_id}?seq=${seq}`}
                title={`Entry ${seq} of session ${session_id}`}
              >
                [{session_id.slice(0, 4)}…{session_id.slice(-8)}#{seq}]
              </Link>
              {polarity === '-' && <span className="tag is-bad">contradicts</span>}
              <q>{quote}</q>
            </li>
          ))}
        </ul>
      )}
      {cites.length > CITES_SHOWN && (
        <button
          type="button"
          className="button is-small"
          aria-expanded={is_whole}
          onClick={() => setWhole(!is_whole)}
        >
          {is_whole ? 'Show fewer' : `Show all ${countText(cites.length)} citations`}
        </button>
      )}
    </>
  )
}
