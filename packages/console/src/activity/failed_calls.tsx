import type { Tool, ToolFailures } from '@annals/client'
import { Link } from '../address/link.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { countOfRead, countText, Timestamp } from '../parts/timestamp.tsx'
import type { TimeRange } from '../sessions/time_range.tsx'
import { useFailures } from './tools_query.ts'

/** The failed calls of a tool by what their messages have in common: what it returned, and what the agent said next. */
export function FailedCalls({ tool, range }: { tool: Tool; range: TimeRange }) {
  const { data, isError, error, refetch } = useFailures(tool.name, range)
  if (isError && !data) return <Failure error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading what="failed calls" />
  const { name, failures, groups, has_more, complete } = data
  const least = complete ? '' : '≥ '
  return (
    <section className="failed-calls" aria-label={`Failed calls of ${name}`}>
      <h3>
        <span className="mono">{name}</span> failed {least}
        {countText(failures)} {failures === 1 ? 'time' : 'times'}
        {groups.length > 1 && `, in ${countOfRead(groups.length, has_more)} ways`}
      </h3>
      <ol>
        {groups.map((group) => (
          <Group key={group.message} group={group} least={least} />
        ))}
      </ol>
      {has_more && <p className="hint">The most frequent {countText(groups.length)} are shown.</p>}
    </section>
  )
}

function Group({ group, least }: { group: ToolFailures['groups'][number]; least: string }) {
  const { message, failures, sessions, examples, last_at } = group
  return (
    <li>
      <p>
        <strong className="mono">
          {least}
          {countText(failures)} ×
        </strong>{' '}
        <span className="is-bad mono">{message ?? 'no message'}</span>{' '}
        <span className="faint">
          in {countText(sessions)} {sessions === 1 ? 'session' : 'sessions'}, last <Timestamp at={last_at} />
        </span>
      </p>
      <ul>
        {examples.map(({ session_id, title, seq, result, said, called }) => (
          <li key={`${session_id} ${seq}`}>
            <p>
              <Link to={`/sessions/${session_id}?seq=${seq}`}>{title ?? session_id}</Link>{' '}
              <span className="seq mono">{seq}</span>
            </p>
            <p className="mono">{result || 'no text'}</p>
            {called && called.seq < (said?.seq ?? Number.POSITIVE_INFINITY) && (
              <p>
                then called{' '}
                <Link to={`/sessions/${session_id}?seq=${called.seq}`}>
                  <span className="mono">{called.name}</span>
                </Link>{' '}
                <span className="seq mono">{called.seq}</span>
              </p>
            )}
            {said ? (
              <blockquote>
                {said.text} <Link to={`/sessions/${session_id}?seq=${said.seq}`}>entry {said.seq}</Link>
              </blockquote>
            ) : (
              !called && <p className="faint">Nothing came after it.</p>
            )}
          </li>
        ))}
      </ul>
    </li>
  )
}
