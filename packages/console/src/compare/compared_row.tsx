import { detailOf, type Row, type Step } from '@annals/messages/session'
import { diffWordsWithSpace } from 'diff'
import { useMemo, useState } from 'react'
import { Link } from '../address/link.tsx'
import { LongText } from '../parts/long_text.tsx'

const TEXT_MAX = 1_200
/** Longer texts are not compared word by word. */
const COMPARED_MAX = 8_000
const DIFF_MS_MAX = 100

/** Two steps side by side, with their differences marked. */
export function ComparedRow(props: {
  row: Row
  is_same: boolean
  /** Whether the runs part here. */
  is_parting?: boolean
  ids: [string, string]
}) {
  const { row, is_same, is_parting, ids } = props
  const { left, right } = row
  const is_call = (left ?? right)!.kind === 'call'
  return (
    <div
      className={`compared-row ${is_call ? 'is-call' : ''} ${is_parting ? 'is-parting' : ''} ${is_same ? '' : left && right ? 'is-changed' : 'is-alone'}`}
    >
      <Side step={left} other={right} id={ids[0]} side="left" />
      <Side step={right} other={left} id={ids[1]} side="right" />
    </div>
  )
}

interface SideParts {
  step: Step | undefined
  other: Step | undefined
  id: string
  side: 'left' | 'right'
}

function Side({ step, other, id, side }: SideParts) {
  if (!step)
    return <div className="compared-none">{side === 'left' ? 'Only at the right' : 'Only at the left'}</div>
  const { seq, name, kind, text, result, verdict } = step
  return (
    <section
      className={`compared-side ${verdict === 'failed' ? 'is-failed' : ''}`}
      aria-label={`Entry ${seq}, ${side}`}
    >
      <p className="card-head">
        <Link className="seq mono" to={`/sessions/${id}?seq=${seq}`}>
          {seq}
        </Link>
        <span className={kind === 'said' ? 'speaker-name' : 'mono call-name'}>{name}</span>
        {verdict && <span className="call-state">{verdict === 'ok' ? 'answered' : verdict}</span>}
      </p>
      {kind === 'call' ? (
        <Folded label="Arguments" text={text} other={other?.text} side={side} />
      ) : (
        <Differing text={text} other={other?.text} side={side} />
      )}
      {result !== undefined && <Folded label="Result" text={result} other={other?.result} side={side} />}
    </section>
  )
}

const UNFOLDED_MAX = 240

/** Arguments or a result: folded where they are long, or the same on both sides, to what they are about. */
function Folded(props: { label: string; text: string; other: string | undefined; side: SideParts['side'] }) {
  const { label, text, other, side } = props
  const is_short = text.length <= UNFOLDED_MAX && text !== other
  const [is_open, setOpen] = useState(is_short)
  return (
    <details open={is_open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary className="call-label">
        {label}{' '}
        {!is_open && (
          <span className="mono">
            {text === other ? 'the same' : (detailOf(text) ?? text.slice(0, BRIEF_MAX))}
          </span>
        )}
      </summary>
      {is_open && <Differing text={text} other={other} side={side} />}
    </details>
  )
}

const BRIEF_MAX = 80

/** A text; the words in it that the other one lacks are marked. */
function Differing({
  text,
  other,
  side,
}: {
  text: string
  other: string | undefined
  side: SideParts['side']
}) {
  const parts = useMemo(() => {
    const is_long = Math.max(text.length, other?.length ?? 0) > COMPARED_MAX
    if (other === undefined || other === text || is_long) return undefined
    return diffWordsWithSpace(text, other, { timeout: DIFF_MS_MAX })
  }, [text, other])
  if (!parts) return <LongText text={text} max={TEXT_MAX} is_plain />
  const Changed = side === 'left' ? 'del' : 'ins'
  return (
    <div className="plain-text">
      {parts.map(({ value, added, removed }, index) =>
        added ? null : removed ? <Changed key={index}>{value}</Changed> : value,
      )}
    </div>
  )
}
