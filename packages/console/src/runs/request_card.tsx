import type { Resolution, RunnerRequest } from '@annals/client'
import { type FormEvent, useRef } from 'react'
import { useProject } from '../access/project_context.tsx'
import type { Json } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { Timestamp } from '../parts/timestamp.tsx'
import '../styles/runs.css'

type Asked = Pick<RunnerRequest, 'kind' | 'call' | 'text'>

/** A request: its text, and the call with all of its arguments. */
export function AskedText({ request: { text, call } }: { request: Asked }) {
  return (
    <>
      {text && (
        <p className="request-text" dir="auto">
          {text}
        </p>
      )}
      {call && (
        <div className="request-call">
          <p className="mono call-name">{call.name}</p>
          <JsonTree value={call.arguments as Json} is_content />
        </div>
      )}
    </>
  )
}

/** The buttons that answer a request. */
export function Answers(props: {
  request: RunnerRequest
  is_busy: boolean
  onAnswer: (answer: Resolution) => void
}) {
  const { request, is_busy, onAnswer } = props
  const { may_write } = useProject()
  const field = useRef<HTMLInputElement>(null)
  if (!may_write) return <p className="hint">This key may only read: it cannot answer.</p>
  if (request.kind === 'approval')
    return (
      <div className="decisions">
        <DecisionButton
          label="Approve"
          hint="a"
          {...{ is_busy }}
          onPress={() => onAnswer({ decision: 'approve' })}
        />
        <DecisionButton
          label="Deny"
          hint="d"
          {...{ is_busy }}
          onPress={() => onAnswer({ decision: 'deny' })}
        />
      </div>
    )
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const answer = field.current!.value.trim()
    if (answer !== '') onAnswer({ decision: 'answer', answer })
  }
  return (
    <form className="decisions" onSubmit={submit}>
      {request.options?.map((option, index) => (
        <DecisionButton
          key={option}
          label={option}
          hint={index < 9 ? String(index + 1) : undefined}
          {...{ is_busy }}
          onPress={() => onAnswer({ decision: 'answer', answer: option })}
        />
      ))}
      <label className="request-answer">
        <span className="visually-hidden">Answer</span>
        <input
          ref={field}
          dir="auto"
          data-answer
          placeholder={request.options ? 'Another answer (e)' : 'Answer (e)'}
          maxLength={ANSWER_LENGTH_MAX}
          autoComplete="off"
        />
      </label>
      <button type="submit" className="button is-small" disabled={is_busy}>
        Answer
      </button>
    </form>
  )
}

const ANSWER_LENGTH_MAX = 16_384

function DecisionButton(props: {
  label: string
  hint: string | undefined
  is_busy: boolean
  onPress: () => void
}) {
  const { label, hint, is_busy, onPress } = props
  return (
    <button
      type="button"
      className="button is-small"
      disabled={is_busy}
      {...(hint && { 'aria-keyshortcuts': hint, title: `Key: ${hint}` })}
      onClick={onPress}
    >
      {label}
    </button>
  )
}

/** When a request was made, and until when it can be answered. */
export function AskedAt({ request: { created_at, expires_at } }: { request: RunnerRequest }) {
  return (
    <span className="hint">
      asked <Timestamp at={created_at} />
      {expires_at && (
        <>
          , until <Timestamp at={expires_at} />
        </>
      )}
    </span>
  )
}
