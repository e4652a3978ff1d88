import type { TimelineEvent } from '@annals/client'
import { readCompaction } from '@annals/messages/context'
import { writeJson } from '@annals/messages/json'
import type { Block, KeptState, ReadEntry } from '@annals/messages/session'
import { countText } from '../parts/timestamp.tsx'
import { useIsFound } from '../search/finder.ts'
import { EventCard } from './event_card.tsx'
import { Part } from './message_card.tsx'

const TEXT_MAX = 2_400

/** A summary, folded, and the entries for which it stands in contexts. */
export function CompactionCard(props: {
  item: TimelineEvent
  read: ReadEntry
  onJump: (seq: number) => void
}) {
  const { item, read, onJump } = props
  const compaction = readCompaction(writeJson(item.data))
  const said = read.blocks.filter((block) => block.kind !== 'state')
  const is_found = useIsFound(() => writeJson(item.data))
  if (!compaction) return <EventCard item={item} state={undefined} />
  const place = (seq: number) => (
    <button type="button" className="plain mono" onClick={() => onJump(seq)}>
      {countText(seq)}
    </button>
  )
  return (
    <section className="card event" aria-label="Summary">
      <p className="card-head">
        <span className="event-type">Summary</span>
        <span className="event-summary">
          stands for entries {place(compaction.from_seq)} to {place(compaction.to_seq)} in contexts
        </span>
        <span className="tag">{read.blocks.find(isState)?.summary}</span>
      </p>
      <details className="thinking" open={is_found || undefined}>
        <summary>What it says · {countText(compaction.tokens)} tokens</summary>
        {said.map((block, index) => (
          <Part key={index} block={block} text_max={TEXT_MAX} onJump={onJump} />
        ))}
      </details>
    </section>
  )
}

function isState(block: Block): block is { kind: 'state' } & KeptState {
  return block.kind === 'state'
}
