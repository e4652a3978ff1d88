import type { Annals, TimelineItem } from '@annals/client'

const IDS_MAX = 200 // of one request

/** The entries with these ids, in this order, any number of them; those that the session does not have are left out. */
export async function readByIds(annals: Annals, session_id: string, ids: readonly string[]) {
  const found: TimelineItem[] = []
  for (let from = 0; from < ids.length; from += IDS_MAX) {
    const slice = ids.slice(from, from + IDS_MAX).join(',')
    found.push(...(await annals.sessions.timeline(session_id, { ids: slice }).page()).items)
  }
  return found
}
