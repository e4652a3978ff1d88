import type { TimelineMessage } from '@annals/client'
import { useMemo } from 'react'
import { JsonTree } from '../json/json_tree.tsx'
import { LongText } from '../parts/long_text.tsx'
import { OutsideLink } from '../parts/markdown.tsx'
import { countText } from '../parts/timestamp.tsx'
import { CallCard, ResultBody } from './call_card.tsx'
import type { ToolCall } from './calls.ts'
import type { MessagePart } from './message_parts.ts'
import { readMessage } from './read_message.ts'

/** Characters of a text that are shown at first. */
const TEXT_MAX = 2_400
const SYSTEM_TEXT_MAX = 280

/** A message: who speaks, and what, as people read it. */
export function MessageCard(props: {
  item: TimelineMessage
  calls: ToolCall[] | undefined
  onJump: (seq: number) => void
}) {
  const { item, calls = [], onJump } = props
  const { speaker, parts } = useMemo(() => readMessage(item), [item])
  const is_background = speaker === 'system' || speaker === 'developer'
  let called = 0
  return (
    <div
      className={`message is-${is_background ? 'system' : item.role} from-${speaker.replace(/[^a-z]/gi, '')}`}
    >
      <p className="speaker">
        <span className="speaker-name">{speaker}</span>
        {item.format !== 'openai' && <span className="tag">{item.format}</span>}
        {Object.keys(item.meta).length > 0 && <MetaTag meta={item.meta} />}
      </p>
      {parts.length === 0 && <p className="faint">Says nothing.</p>}
      {parts.map((part, index) => {
        const call = part.type === 'call' ? calls[called++] : undefined
        return (
          <Part
            key={index}
            part={part}
            call={call}
            text_max={is_background ? SYSTEM_TEXT_MAX : TEXT_MAX}
            onJump={onJump}
          />
        )
      })}
    </div>
  )
}

function Part(props: {
  part: MessagePart
  call: ToolCall | undefined
  text_max: number
  onJump: (seq: number) => void
}) {
  const { part, call, text_max, onJump } = props
  switch (part.type) {
    case 'text':
      return <LongText text={part.text} max={text_max} />
    case 'thinking':
      return (
        <details className="thinking">
          <summary>Thinking · {countText(part.text.length)} characters</summary>
          <LongText text={part.text} max={text_max} />
        </details>
      )
    case 'image':
      return <Picture source={part.source} />
    case 'call':
      return call ? <CallCard call={call} onJump={onJump} /> : null
    case 'result':
      return (
        <div className={`card ${part.is_error ? 'is-failed' : ''}`}>
          <p className="card-head">Result{part.name && ` of ${part.name}`}</p>
          <ResultBody output={part.output} />
        </div>
      )
    case 'file':
      return (
        <details className="thinking">
          <summary>File · {part.name}</summary>
          <JsonTree value={part.value} />
        </details>
      )
    case 'other':
      return (
        <div className="card is-json">
          <JsonTree value={part.value} />
        </div>
      )
  }
}

/** An image that came with the message. One from elsewhere is not fetched: that would tell who reads. */
function Picture({ source }: { source: string }) {
  if (/^data:image\/(?:png|jpeg|gif|webp|avif);base64,/.test(source))
    return <img className="picture" src={source} alt="From the message" />
  return (
    <p className="picture-link">
      Image elsewhere, not loaded: <OutsideLink href={source}>{source.slice(0, 120)}</OutsideLink>
    </p>
  )
}

function MetaTag({ meta }: { meta: object }) {
  return (
    <span className="tag" title={JSON.stringify(meta, null, 1)}>
      meta {Object.keys(meta).slice(0, 3).join(', ')}
    </span>
  )
}
