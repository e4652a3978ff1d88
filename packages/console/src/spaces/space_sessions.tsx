import type { SpaceSession } from '@annals/client'
import { useMemo } from 'react'
import { Link } from '../address/link.tsx'
import { useSpaceSessions } from '../learning/learning_query.ts'
import { countText, Timestamp } from '../parts/timestamp.tsx'
import { useFacts } from '../sessions/facts_query.ts'

type Line = SpaceSession & { user_id: null }

/** The sessions from which a learning space learns. */
export function SpaceSessions({ id }: { id: string }) {
  const sessions = useSpaceSessions(id)
  const lines = useMemo(
    () => sessions.data?.map((one): Line => ({ ...one, id: one.session_id, user_id: null })) ?? [],
    [sessions.data],
  )
  return (
    <section className="space-sessions" aria-label="Sessions of this space">
      <h2>
        Sessions <span className="mono faint">{countText(lines.length)}</span>
      </h2>
      {sessions.isSuccess && lines.length === 0 && <p className="hint">None yet.</p>}
      {sessions.isError && <p className="failure-line">{sessions.error.message}</p>}
      <ul>
        {lines.map((line) => (
          <li key={line.session_id}>
            <SessionLine line={line} lines={lines} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function SessionLine({ line, lines }: { line: Line; lines: Line[] }) {
  const { figures } = useFacts(line, lines)
  const { session_id, status, error, created_at } = line
  return (
    <>
      <Link to={`/sessions/${session_id}`}>{figures?.title ?? session_id}</Link>
      <span className="tag">{status}</span>
      <Timestamp at={created_at} />
      {error && <span className="failure-line">{error}</span>}
    </>
  )
}
