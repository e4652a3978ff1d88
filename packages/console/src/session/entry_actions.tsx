import type { TimelineItem } from '@annals/client'
import { hrefOf } from '../address/address.ts'
import { CopyButton } from '../parts/copy_button.tsx'

/** The actions of an entry. */
export function EntryActions({ item }: { item: TimelineItem }) {
  return (
    <div className="entry-actions">
      <CopyButton what={`the link to entry ${item.seq}`} text={() => linkOf(item)}>
        Link
      </CopyButton>
      <CopyButton what={`entry ${item.seq} as JSON`} text={() => jsonOf(item)}>
        JSON
      </CopyButton>
      <CopyButton what={`the command that reads entry ${item.seq}`} text={() => curlOf(item)}>
        curl
      </CopyButton>
    </div>
  )
}

/** The entry as the API returned it. */
export function jsonOf(item: TimelineItem): string {
  return JSON.stringify(item, null, 2)
}

function linkOf({ session_id, seq }: TimelineItem): string {
  return `${location.origin}${hrefOf(`/sessions/${session_id}?seq=${seq}`)}`
}

/** A command that reads the entry. The key is a variable: it is never copied. */
function curlOf({ session_id, seq }: TimelineItem): string {
  return `curl -s '${location.origin}/api/v1/session/${session_id}/timeline?after_seq=${seq - 1}&limit=1' -H "Authorization: Bearer $KEY"`
}
