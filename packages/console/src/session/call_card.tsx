import { type Json, shortText } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { LongText } from '../parts/long_text.tsx'
import { durationText } from '../parts/timestamp.tsx'
import type { ToolCall } from './calls.ts'

const RESULT_TEXT_MAX = 1_200

/** A tool call and its result, as one. */
export function CallCard({ call, onJump }: { call: ToolCall; onJump: (seq: number) => void }) {
  const { number, name, input, result } = call
  const state = result === undefined ? 'is-open' : result.is_error ? 'is-failed' : 'is-answered'
  return (
    <section className={`card call ${state}`} aria-label={`Tool call ${number}: ${name}`}>
      <p className="card-head">
        <span className="call-number mono">Tool call {number}</span>
        <span className="call-name mono">{name}</span>
        <span className="call-state">
          {result === undefined ? 'no result yet' : result.is_error ? 'failed' : 'answered'}
          {result && tookText(call.at, result.at)}
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
            <ResultBody output={result.output} />
          </>
        )}
      </div>
    </section>
  )
}

/** Text as text, and all else as a tree. */
export function ResultBody({ output }: { output: Json }) {
  if (typeof output === 'string') {
    return output === '' ? <p className="faint">empty</p> : <LongText text={output} max={RESULT_TEXT_MAX} />
  }
  if (typeof output !== 'object' || output === null) return <p className="mono">{shortText(output)}</p>
  return <JsonTree value={output} />
}

/** Runs that were imported have one time for all their entries, which tells nothing. */
function tookText(from: string, to: string): string {
  const ms = Date.parse(to) - Date.parse(from)
  return to > from ? ` in ${durationText(ms)}` : ''
}

function isEmpty(value: Json): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0)
}
