import type { TimelineItem } from '@annals/client'
import { CopyButton } from '../parts/copy_button.tsx'

/** The actions of an entry. */
export function EntryActions({ item }: { item: TimelineItem }) {
  return (
    <div className="entry-actions">
      <CopyButton text={() => jsonOf(item)}>JSON</CopyButton>
      <CopyButton text={() => curlOf(item)}>curl</CopyButton>
    </div>
  )
}

/** The entry as the API returned it. */
export function jsonOf(item: TimelineItem): string {
  return JSON.stringify(item, null, 2)
}

/** A command that reads the entry. The key is a variable: it is never copied. */
function curlOf({ session_id, seq }: TimelineItem): string {
  return `curl -s '${location.origin}/api/v1/session/${session_id}/timeline?after_seq=${seq - 1}&limit=1' -H "Authorization: Bearer $KEY"`
}
