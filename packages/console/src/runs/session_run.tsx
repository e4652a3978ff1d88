import type { InboxInput, NewInput, Session } from '@annals/client'
import { type SubmitEvent, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import type { Json } from '../json/exact_json.ts'
import { shortText } from '../json/exact_json.ts'
import { Timestamp } from '../parts/timestamp.tsx'
import { useInbox, useRun } from './runs_query.ts'
import '../styles/runs.css'
import { RunStateChip } from '../parts/run_state.tsx'

const MODES = {
  queue: 'after its turn',
  steer: 'during its turn',
  interrupt: 'at once: interrupts it',
} as const
const INPUT_TEXT_MAX = 200

/** Who works on a session, what it was sent, and a field to send more. Nothing for one that has no run and no field. */
export function SessionRun(props: { session: Session; opens: boolean; onOpen: (opens: boolean) => void }) {
  const { session, opens, onOpen } = props
  const { may_write } = useProject()
  const [was_sent, setSent] = useState(false)
  const { data } = useRun(session.id, session.run !== undefined || was_sent)
  const { send, withdraw } = useInbox(session.id)
  const run = data?.run ?? session.run
  const failed = [send, withdraw].find(({ isError }) => isError)
  const sendInput = (input: NewInput, onDone: () => void = () => {}) =>
    send.mutate(input, {
      onSuccess: () => {
        setSent(true)
        onDone()
      },
    })
  if (!run && !opens && !was_sent) return null
  return (
    <section className="session-run" aria-label="Run">
      {run && (
        <p className="run-line">
          <RunStateChip state={run.state} />
          {run.owner && (
            <span>
              <span className="mono">{run.owner}</span>
              {run.taken_at && (
                <span className="hint">
                  {' '}
                  since <Timestamp at={run.taken_at} />
                </span>
              )}
            </span>
          )}
          {may_write && (
            <>
              <button
                type="button"
                className="button is-small"
                aria-expanded={opens}
                onClick={() => onOpen(!opens)}
              >
                Send…
              </button>
              {run.state === 'running' && (
                <button
                  type="button"
                  className="button is-small is-danger-quiet"
                  disabled={send.isPending}
                  title="Sends an event `stop` that interrupts"
                  onClick={() => sendInput({ kind: 'event', mode: 'interrupt', type: 'stop', data: {} })}
                >
                  Stop
                </button>
              )}
            </>
          )}
        </p>
      )}
      {failed && (
        <p className="failure-line" role="alert">
          {failed === send ? 'Not sent' : 'Not withdrawn'}: {failed.error!.message}
        </p>
      )}
      {opens && <SendForm is_busy={send.isPending} onSend={sendInput} onClose={() => onOpen(false)} />}
      {data && data.inputs.length > 0 && (
        <ul className="inputs" aria-label="Pending input">
          {data.inputs.map((input) => (
            <li key={input.id}>
              <span className="tag">{input.mode}</span>
              <span className="input-text" dir="auto">
                {inputText(input)}
              </span>
              {may_write && (
                <button
                  type="button"
                  className="button is-small is-quiet"
                  onClick={() => withdraw.mutate(input.id)}
                >
                  Withdraw
                </button>
              )}
            </li>
          ))}
          {data.has_more && <li className="hint">and more</li>}
        </ul>
      )}
    </section>
  )
}

function SendForm(props: {
  is_busy: boolean
  onSend: (input: NewInput, onDone: () => void) => void
  onClose: () => void
}) {
  const { is_busy, onSend, onClose } = props
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const content = String(form.get('text')).trim()
    const mode = String(form.get('mode')) as keyof typeof MODES
    if (content !== '') onSend({ kind: 'message', mode, blob: { role: 'user', content } }, onClose)
  }
  return (
    <form
      className="send"
      onSubmit={submit}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose()
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit()
      }}
    >
      <label className="field">
        <span className="visually-hidden">Message to the runner</span>
        <textarea
          name="text"
          dir="auto"
          rows={2}
          placeholder="As the user, to whoever works on the session"
          ref={(field) => field?.focus()}
        />
      </label>
      <label>
        <span className="visually-hidden">When the runner takes it up</span>
        <select name="mode" defaultValue="queue">
          {Object.entries(MODES).map(([mode, name]) => (
            <option key={mode} value={mode}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" className="button is-primary" disabled={is_busy}>
        Send
      </button>
    </form>
  )
}

/** What an input says, in a line. */
function inputText({ kind, type, data, blob }: InboxInput): string {
  if (kind === 'event') return `${type} ${shortText((data ?? {}) as Json)}`.slice(0, INPUT_TEXT_MAX)
  const { content } = blob as { content?: unknown }
  const text = typeof content === 'string' ? content : shortText(blob as Json)
  return text.slice(0, INPUT_TEXT_MAX)
}
