import type { TimelineItem } from '@annals/client'
import { estimateTokens } from '@annals/messages'
import type { Block, ReadEntry } from '@annals/messages/session'
import type { Json } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { LongText } from '../parts/long_text.tsx'
import { countText } from '../parts/timestamp.tsx'
import { useIsFound } from '../search/finder.ts'
import { Attachment } from './attachment.tsx'
import { CallCard, ResultText, Told } from './call_card.tsx'

/** Characters of a text shown at first. */
const TEXT_MAX = 2_400
const SYSTEM_TEXT_MAX = 280

/** A message, with its speaker, for reading. */
export function MessageCard(props: {
  /** A message, or an event that a framework's adapter stores one in. */
  item: TimelineItem
  read: ReadEntry
  onJump: (seq: number) => void
}) {
  const { item, read, onJump } = props
  const { speaker, name, blocks } = read
  const format = item.kind === 'message' ? item.format : item.type
  const meta = item.kind === 'message' ? item.meta : {}
  const is_background = speaker === 'system' || speaker === 'developer'
  return (
    <div className={`message ${is_background ? 'is-system ' : ''}from-${speaker}`}>
      <p className="speaker">
        <span className="speaker-name">{name ? `${speaker} ${name}` : speaker}</span>
        {format !== 'openai' && <span className="tag">{format}</span>}
        {Object.keys(meta).length > 0 && <MetaTag meta={meta} />}
      </p>
      {blocks.length === 0 && <p className="faint">Empty message.</p>}
      {blocks.map((block, index) => (
        <Part
          key={index}
          block={block}
          text_max={is_background ? SYSTEM_TEXT_MAX : TEXT_MAX}
          onJump={onJump}
        />
      ))}
    </div>
  )
}

/** A block of a message. */
export function Part(props: { block: Block; text_max: number; onJump: (seq: number) => void }) {
  const { block, text_max, onJump } = props
  switch (block.kind) {
    case 'text':
      return <LongText text={block.text} max={text_max} />
    case 'thinking':
      return block.text === null ? (
        <p className="faint">Thinking, hidden by the provider.</p>
      ) : (
        <Thinking text={block.text} text_max={text_max} />
      )
    case 'streamed':
      if (block.is_repeat || block.whole.text === '') return null
      return block.whole.is_thinking ? (
        <Thinking text={block.whole.text} text_max={text_max} />
      ) : (
        <LongText text={block.whole.text} max={text_max} />
      )
    case 'medium':
      return <Attachment part={block.part} />
    case 'call':
      return block.is_repeat ? (
        <Told block={block} onJump={onJump} />
      ) : (
        <CallCard call={block.call} onJump={onJump} />
      )
    case 'result':
      // It is shown with its call.
      if (block.call) return null
      return (
        <div className={`card ${block.result.is_failed ? 'is-failed' : ''}`}>
          <p className="card-head">Result{block.name && ` of ${block.name}`}</p>
          <ResultText text={block.result.text} />
        </div>
      )
    case 'state':
      return <JsonTree value={block.value as Json} />
    case 'data':
      return (
        <div className="card is-json">
          <JsonTree value={block.value as Json} />
        </div>
      )
  }
}

function Thinking({ text, text_max }: { text: string; text_max: number }) {
  const is_found = useIsFound(() => text)
  return (
    <details className="thinking" open={is_found || undefined}>
      <summary>Thinking · about {countText(estimateTokens(text))} tokens</summary>
      <LongText text={text} max={text_max} />
    </details>
  )
}

function MetaTag({ meta }: { meta: object }) {
  return (
    <span className="tag" title={JSON.stringify(meta, null, 1)}>
      meta {Object.keys(meta).slice(0, 3).join(', ')}
    </span>
  )
}
