import type { TimelineEvent } from '@annals/client'
import { blobReferences } from '@annals/messages'
import { writeJson } from '@annals/messages/json'
import type { KeptState } from '@annals/messages/session'
import { useState } from 'react'
import { type Json, shortText } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { useIsFound } from '../search/finder.ts'
import { StoredBlob } from './attachment.tsx'
import { LargeData } from './large_data.tsx'

const BAD = /error|fail|exception|abort|crash|timeout|exceed|denied|reject/i
const GOOD = /ended|complete|succe|finish|done/i
/** Members that summarize an event in one line. */
const TELLING = [
  'message',
  'error',
  'reason',
  'name',
  'title',
  'text',
  'summary',
  'step',
  'outcome',
  'status',
  'model',
]
const TEXT_MAX = 160

/** An event: its type, a summary, and all of its data; or, in a line, the state that a framework keeps in it. */
export function EventCard({ item, state }: { item: TimelineEvent; state: KeptState | undefined }) {
  const data = item.data as { [key: string]: Json }
  const names = Object.keys(data)
  const shown = state ? (state.value as Json) : data
  const summary = state?.summary ?? summaryOf(data)
  const is_found = useIsFound(() => writeJson(data))
  const [chosen, setOpen] = useState<boolean>()
  const is_short = !state && names.length <= 6 && JSON.stringify(data).length < 400
  const is_open = chosen ?? (is_short || is_found)
  const is_bad = state ? state.is_failed : BAD.test(item.type)
  const mood = is_bad ? 'is-failed' : !state && GOOD.test(item.type) ? 'is-answered' : ''
  return (
    <section className={`card event ${mood}`} aria-label={`Event ${item.type}`}>
      <p className="card-head">
        <span className="event-type mono">{state?.title ?? item.type}</span>
        <span className="event-summary">{is_open && !state ? '' : summary.slice(0, TEXT_MAX)}</span>
        {state && state.title !== item.type && <span className="tag">{item.type}</span>}
        {names.length > 0 && (
          <button
            type="button"
            className="button is-small is-quiet"
            aria-expanded={is_open}
            onClick={() => setOpen(!is_open)}
          >
            {is_open ? 'Hide data' : 'Data'}
          </button>
        )}
      </p>
      {is_open && names.length > 0 && <JsonTree value={shown} />}
      {Array.isArray(data.adapter_parts) && (
        <LargeData session_id={item.session_id} ids={data.adapter_parts.map(String)} />
      )}
      {blobsOf(data).map(({ pointer, reference: { annals_blob, media_type, filename } }) => (
        <StoredBlob key={pointer} sha256={annals_blob} {...{ media_type, filename }} />
      ))}
    </section>
  )
}

function summaryOf(data: { [key: string]: Json }): string {
  const told = TELLING.filter((key) => typeof data[key] === 'string').map((key) => shortText(data[key]))
  const plain = Object.keys(data).filter((name) => typeof data[name] !== 'object')
  const said = told.length > 0 ? told : plain.map((name) => `${name} ${shortText(data[name])}`)
  return said.slice(0, 3).join(' · ')
}

/** Stored events refer to blobs as they should; those from before blobs may have anything of that name. */
function blobsOf(data: { [key: string]: Json }) {
  try {
    return blobReferences(data)
  } catch {
    return []
  }
}
