import type { Block, ToolCall, Verdict } from '@annals/messages/session'
import { useMemo } from 'react'
import { type Json, shortText, valueIn } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { LongText } from '../parts/long_text.tsx'
import { durationText } from '../parts/timestamp.tsx'

const RESULT_TEXT_MAX = 1_200

const STATES: Record<Verdict, string> = { open: 'no result yet', ok: 'answered', failed: 'failed' }
const CLASSES: Record<Verdict, string> = { open: 'is-open', ok: 'is-answered', failed: 'is-failed' }

/** A tool call with its result. */
export function CallCard({ call, onJump }: { call: ToolCall; onJump: (seq: number) => void }) {
  const { number, name, arguments: given, result, verdict } = call
  const input = useMemo(() => valueIn(given), [given])
  // Unknown where the log above is not loaded.
  const title = number === undefined ? 'Tool call' : `Tool call ${number}`
  return (
    <section className={`card call ${CLASSES[verdict]}`} aria-label={`${title}: ${name}`}>
      <p className="card-head">
        <span className="call-number mono">{title}</span>
        <span className="call-name mono">{name}</span>
        <span className="call-state">
          {STATES[verdict]}
          {/* Runs that were imported have one time for all their entries, which tells nothing. */}
          {result !== undefined && result.duration_ms > 0 && ` in ${durationText(result.duration_ms)}`}
        </span>
      </p>
      <div className="call-body">
        <p className="call-label">Arguments</p>
        {isEmpty(input) ? <p className="faint">none</p> : <ResultBody output={input} />}
        {result && (
          <>
            <p className="call-label">
              Result
              <button
                type="button"
                className="plain mono"
                onClick={() => onJump(result.seq)}
                title={`Entry ${result.seq}`}
              >
                {result.seq}
              </button>
            </p>
            <ResultText text={result.text} />
          </>
        )}
      </div>
    </section>
  )
}

/** A tool's output: the JSON in it, or the text. */
export function ResultText({ text }: { text: string }) {
  const output = useMemo(() => valueIn(text), [text])
  return <ResultBody output={output} />
}

/** Replaces content that another entry shows. */
export function Told({ block, onJump }: { block: Block; onJump: (seq: number) => void }) {
  if (block.kind === 'streamed')
    return (
      <p className="told">
        Part of{' '}
        <button type="button" className="plain" onClick={() => onJump(block.whole.seq)}>
          the text at entry {block.whole.seq}
        </button>
      </p>
    )
  if (!('call' in block) || !block.call) return null
  const { number, name, seq } = block.call
  return (
    <p className="told">
      {block.kind === 'result' ? 'Result of' : 'Recorded again:'}{' '}
      <button type="button" className="plain" onClick={() => onJump(seq)}>
        call {number === undefined ? name : `${number}, ${name}`}
      </button>
      {block.kind === 'result' && ', shown with it'}
    </p>
  )
}

/** Text as text, everything else as a tree. */
function ResultBody({ output }: { output: Json }) {
  if (typeof output === 'string') {
    return output === '' ? (
      <p className="faint">empty</p>
    ) : (
      <LongText text={output} max={RESULT_TEXT_MAX} is_plain />
    )
  }
  if (typeof output !== 'object' || output === null) return <p className="mono">{shortText(output)}</p>
  return <JsonTree value={output} />
}

function isEmpty(value: Json): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
}
