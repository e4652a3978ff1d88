import type { TimelineItem } from '@annals/client'
import { COMPACTION_TYPE } from '@annals/messages/context'
import { type Block, isShownElsewhere, type ReadEntry } from '@annals/messages/session'
import { memo } from 'react'
import type { Json } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { FaultBoundary } from '../parts/fault_boundary.tsx'
import { countText, durationText, Timestamp } from '../parts/timestamp.tsx'
import { REQUEST_TYPE, RESOLUTION_TYPE, RequestEvent, ResolutionEvent } from '../runs/request_event.tsx'
import { CallCard, Told } from './call_card.tsx'
import { CompactionCard } from './compaction_card.tsx'
import { EntryActions } from './entry_actions.tsx'
import { EventCard } from './event_card.tsx'
import { MessageCard } from './message_card.tsx'

/** Shorter pauses are not shown. */
const GAP_MS_MIN = 1_000

export interface EntryParts {
  item: TimelineItem
  /** When the entry was stored after which a pause is counted. */
  before: string | undefined
  read: ReadEntry
  /** Version of the reading, which changes with the results of its calls. */
  version: number
  is_current: boolean
  is_match: boolean
  is_new: boolean
  /** The message in the chosen format, to be shown as JSON. */
  converted: Json | undefined
  onJump: (seq: number) => void
}

/** One row of the log: its seq, and its content. */
export const EntryRow = memo(function EntryRow(props: EntryParts) {
  const { item, before, read, is_current, is_match, is_new, converted, onJump } = props
  // Shown at another place; here only for somebody who asks for this very entry.
  if (converted === undefined && !is_current && isShownElsewhere(read)) return null
  const gap_ms = before === undefined ? 0 : Date.parse(read.created_at) - Date.parse(before)
  const marks = [
    is_current && 'is-current',
    is_match && 'is-match',
    is_new && 'is-new',
    item.retracted_by && 'is-retracted',
    converted === undefined && isShownElsewhere(read) && 'is-told',
  ].filter(Boolean)
  return (
    <article className={`entry ${marks.join(' ')}`} aria-label={`Entry ${item.seq}`}>
      {gap_ms >= GAP_MS_MIN && <p className="gap">{durationText(gap_ms)} later</p>}
      <div className="spine">
        <button
          type="button"
          className="seq mono"
          onClick={() => onJump(item.seq)}
          aria-label={`Go to entry ${item.seq}`}
          aria-current={is_current ? 'true' : undefined}
        >
          {countText(item.seq)}
        </button>
        <Timestamp at={read.created_at} only_clock />
      </div>
      <div className="said">
        {item.retracted_by && (
          <p className="retracted">
            Retracted by entry{' '}
            <button type="button" className="plain mono" onClick={() => onJump(item.retracted_by!)}>
              {countText(item.retracted_by)}
            </button>
          </p>
        )}
        <FaultBoundary instead={(fault) => <Undrawable fault={fault} />}>
          <Said {...props} />
        </FaultBoundary>
      </div>
      <EntryActions item={item} />
    </article>
  )
})

/** The entry's content: as JSON if a format was chosen, otherwise by its kind. */
function Said({ item, read, converted, onJump }: EntryParts) {
  if (converted !== undefined)
    return (
      <div className="card is-json">
        <JsonTree value={converted} is_content />
      </div>
    )
  if (isShownElsewhere(read))
    return read.blocks.map((block, index) => <Told key={index} block={block} onJump={onJump} />)
  if (item.kind === 'event' && item.type === COMPACTION_TYPE)
    return <CompactionCard item={item} read={read} onJump={onJump} />
  if (read.kind === 'message') return <MessageCard item={item} read={read} onJump={onJump} />
  if (item.kind === 'event' && item.type === REQUEST_TYPE) return <RequestEvent item={item} />
  if (item.kind === 'event' && item.type === RESOLUTION_TYPE) return <ResolutionEvent item={item} />
  const calls = read.blocks.filter((block) => block.kind === 'call')
  if (calls.length > 0)
    return calls.map(({ call }, index) => <CallCard key={index} call={call} onJump={onJump} />)
  return item.kind === 'event' && <EventCard item={item} state={read.blocks.find(isState)} />
}

function isState(block: Block): block is Extract<Block, { kind: 'state' }> {
  return block.kind === 'state'
}

function Undrawable({ fault }: { fault: Error }) {
  return (
    <p className="faint">
      The console cannot show this entry: <code>{fault.message}</code>. It is stored as it was sent; copy it
      as JSON to read it.
    </p>
  )
}
