import type { TimelineEvent } from '@annals/client'
import { blobReferences } from '@annals/messages'
import { writeJson } from '@annals/messages/json'
import { useState } from 'react'
import { type Json, shortText } from '../json/exact_json.ts'
import { JsonTree } from '../json/json_tree.tsx'
import { useIsFound } from '../search/finder.ts'
import { StoredBlob } from './attachment.tsx'

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

/** An event: its type, a summary, and all of its data. */
export function EventCard({ item }: { item: TimelineEvent }) {
  const data = item.data as { [key: string]: Json }
  const names = Object.keys(data)
  const told = TELLING.filter((key) => typeof data[key] === 'string').map((key) => shortText(data[key]))
  const summary = (
    told.length > 0
      ? told
      : names
          .filter((name) => typeof data[name] !== 'object')
          .map((name) => `${name} ${shortText(data[name])}`)
  )
    .slice(0, 3)
    .join(' · ')
  const is_found = useIsFound(() => writeJson(data))
  const [chosen, setOpen] = useState<boolean>()
  const is_open = chosen ?? ((names.length <= 6 && JSON.stringify(data).length < 400) || is_found)
  const mood = BAD.test(item.type) ? 'is-failed' : GOOD.test(item.type) ? 'is-answered' : ''
  return (
    <section className={`card event ${mood}`} aria-label={`Event ${item.type}`}>
      <p className="card-head">
        <span className="event-type mono">{item.type}</span>
        <span className="event-summary">{is_open ? '' : summary.slice(0, TEXT_MAX)}</span>
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
      {is_open && names.length > 0 && <JsonTree value={data} />}
      {blobsOf(data).map(({ pointer, reference: { annals_blob, media_type, filename } }) => (
        <StoredBlob key={pointer} sha256={annals_blob} {...{ media_type, filename }} />
      ))}
    </section>
  )
}

/** Stored events refer to blobs as they should; those from before blobs may have anything of that name. */
function blobsOf(data: { [key: string]: Json }) {
  try {
    return blobReferences(data)
  } catch {
    return []
  }
}
