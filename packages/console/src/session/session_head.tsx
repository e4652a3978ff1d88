import type { Session } from '@annals/client'
import { shownOutcome } from '@annals/messages/session'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { shortText } from '../json/exact_json.ts'
import { ConfirmDialog } from '../parts/confirm_dialog.tsx'
import { CopyButton } from '../parts/copy_button.tsx'
import { countText, durationText, Timestamp } from '../parts/timestamp.tsx'
import { type Filter, pathText, tellingConditions } from '../sessions/conditions.ts'
import { readFigures, type SessionFigures, useIdentifier } from '../sessions/facts_query.ts'
import { pathOf } from '../sessions/sessions_page.tsx'
import type { Log } from './log_query.ts'
import { useCost } from './session_cost.ts'
import { SessionTree } from './session_tree.tsx'

const VALUE_CHARACTERS_MAX = 60
const CONFIGS_MAX = 24
const SUMMARY_EVERY_MS = 15_000
const SUMMARIES = { waits: 'waits for the model', failed: 'the model’s answers were unusable' }

/** The session's user, configs, length and size. */
export function SessionHead(props: {
  session: Session
  log: Log
  title: string | undefined
  /** Figures of the whole session, where it is not loaded. */
  counted: SessionFigures | undefined
  sends: boolean
  onSend: (sends: boolean) => void
}) {
  const { session, log, title, counted, sends, onSend } = props
  const { annals, project_id, may_write, outcomes } = useProject()
  const [erases, setErases] = useState(false)
  const queries = useQueryClient()
  const { id, user_id, configs } = session
  const user = useIdentifier(user_id)
  const tokens = useQuery({
    queryKey: [project_id, 'tokens', id, log.last_seq],
    queryFn: ({ signal }) => annals.sessions.tokenCounts(id, { signal }),
    placeholderData: (before) => before,
  })
  const cost = useCost(log)
  const summary = useQuery({
    queryKey: [project_id, 'summary', id],
    queryFn: async ({ signal }) => (await readFigures(project_id, id, signal)).get(id)?.summary ?? null,
    refetchInterval: SUMMARY_EVERY_MS,
  })
  const outcome = shownOutcome(configs, outcomes)
  const [began, ended] = [log.entry(1), log.entry(log.last_seq)].map(
    (item) => item?.occurred_at ?? item?.created_at,
  )
  // Entries may be stored in another order than they happened.
  const loaded_ms = Math.max(Date.parse(ended ?? '') - Date.parse(began ?? '') || 0, 0)
  const took_ms = counted?.duration_ms ?? loaded_ms
  return (
    <header className="session-head">
      <p className="crumbs">
        <Link to="/sessions">Sessions</Link>
        {user !== undefined && (
          <>
            <span aria-hidden="true"> / </span>
            <Link to={pathOf({ user })}>{user}</Link>
          </>
        )}
        <span aria-hidden="true"> / </span>
        <span className="mono session-id">{id}</span>
      </p>
      <div className="session-title">
        <h1>{title ?? 'Untitled session'}</h1>
        {outcome && (
          <span
            className={`outcome is-${outcome.verdict}`}
            title={`${pathText(outcome.path)} is ${shortText(outcome.value)}`}
          >
            {outcome.word}
          </span>
        )}
        <span className="session-actions">
          <CopyButton what="the id" text={() => id}>
            Copy id
          </CopyButton>
          <CopyButton
            what="the command that reads the session"
            text={() =>
              `curl -s '${location.origin}/api/v1/session/${id}/timeline?limit=200' -H "Authorization: Bearer $KEY"`
            }
          >
            curl
          </CopyButton>
          {may_write && !session.run && (
            <button
              type="button"
              className="button is-small"
              aria-expanded={sends}
              onClick={() => onSend(!sends)}
            >
              Send…
            </button>
          )}
          {may_write && (
            <button type="button" className="button is-small is-danger-quiet" onClick={() => setErases(true)}>
              Delete…
            </button>
          )}
        </span>
      </div>
      <Facts>
        <Fact name="entries">{countText(log.last_seq)}</Fact>
        <Fact name="tokens">{tokens.data ? countText(tokens.data.total_tokens) : '…'}</Fact>
        {cost !== undefined && <Fact name="cost">{cost}</Fact>}
        {took_ms > 0 && <Fact name="took">{durationText(took_ms)}</Fact>}
        {summary.data && <Fact name="summary">{SUMMARIES[summary.data]}</Fact>}
        <Fact name={began ? 'began' : 'created'}>
          <Timestamp at={began ?? session.created_at} />
        </Fact>
        {tellingConditions(configs as Filter)
          .slice(0, CONFIGS_MAX)
          .map(({ path, value }) => (
            <Fact key={pathText(path)} name={pathText(path)}>
              <Link to={pathOf({ filter: nested(path, value) })} title="All sessions with this">
                {briefly(shortText(value))}
              </Link>
            </Fact>
          ))}
      </Facts>
      <SessionTree id={id} />
      <ConfirmDialog
        title="Delete this session"
        is_open={erases}
        phrase={id.slice(-8)}
        action="Delete the session"
        onClose={() => setErases(false)}
        run={async () => {
          await annals.sessions.delete(id)
          void queries.invalidateQueries({ queryKey: [project_id, 'sessions'] })
          navigate('/sessions')
        }}
      >
        <p>
          This permanently deletes the session and its <b>{countText(log.last_seq)} entries</b>.
        </p>
      </ConfirmDialog>
    </header>
  )
}

/** Facts in one line; where it is too short for them, a button shows all. */
function Facts({ children }: { children: ReactNode }) {
  const line = useRef<HTMLDListElement>(null)
  const [is_open, setOpen] = useState(false)
  const [is_cut, setCut] = useState(false)
  const measure = useCallback(() => {
    const { scrollHeight, clientHeight } = line.current!
    setCut(scrollHeight > clientHeight + 1)
  }, [])
  // The line keeps its size when it has more facts.
  useEffect(measure)
  useEffect(() => {
    const watch = new ResizeObserver(measure)
    watch.observe(line.current!)
    return () => watch.disconnect()
  }, [measure])
  return (
    <div className={`facts-line ${is_open ? 'is-open' : ''}`}>
      <dl className="facts" ref={line}>
        {children}
      </dl>
      {(is_cut || is_open) && (
        <button
          type="button"
          className="button is-small is-quiet"
          aria-expanded={is_open}
          onClick={() => setOpen(!is_open)}
        >
          {is_open ? 'One line' : 'All facts'}
        </button>
      )}
    </div>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function briefly(text: string): string {
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
}

function nested(path: string[], value: unknown): Filter {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Filter
}
