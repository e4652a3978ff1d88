import { entryItemJson, eventJson } from '../../lists/resource_json.js'
import type { Parameter } from '../../postgres/database.js'
import { prepared, type Statement } from '../../postgres/statement.js'

/** Which entries of a session a page shows, and where it starts. */
export interface EntryPage {
  project_id: string
  session_id: string
  kind?: 'event' | 'message' | undefined
  /** Type of an event. */
  type?: string | undefined
  /** Only entries with a greater seq. */
  above_seq: number
  /** Only entries with a smaller seq. */
  below_seq: number
  time_desc: boolean
  limit: number
}

/**
 * How a page writes its entries. Every row has seq and json, where json depends on the view:
 * - event: a SessionEvent;
 * - item: an item of the timeline, with the column kind;
 * - message: the blob as it was written, with the columns id, parent_id, format, role, meta (JSON text) and tokens;
 * - message_id, message_meta: only that value.
 */
export type EntryView = 'event' | 'item' | 'message' | 'message_id' | 'message_meta'

const COLUMNS: Record<EntryView, string> = {
  event: `${eventJson('e')} AS json`,
  item: `${entryItemJson('e', 's')} AS json, e.kind`,
  message:
    'e.data::text AS json, e.id, e.parent_id, e.format, e.role, coalesce(e.patched_meta, e.meta)::text AS meta, e.tokens',
  message_id: 'e.id AS json',
  message_meta: 'coalesce(e.patched_meta, e.meta)::text AS json',
}

/**
 * Composes a page of entries in order of seq. It ends before the entry with which its JSON would exceed `bytes_max`,
 * but always has at least one, so a page of large entries is read in pieces.
 */
export function readEntries(
  page: EntryPage,
  view: EntryView,
  bytes_max: number,
): { statement: Statement; parameters: Parameter[] } {
  const { project_id, session_id, above_seq, below_seq } = page
  const parameters: Parameter[] = [project_id, session_id, page.limit, bytes_max, above_seq, below_seq]
  const direction = page.time_desc ? 'DESC' : 'ASC'
  const conditions = ['e.project_id = $1', 'e.session_id = $2', 'e.seq > $5', 'e.seq < $6']
  const name = ['read_entries', view, direction.toLowerCase()]
  if (page.kind) {
    // Not a parameter, because the planner must see that the partial index of messages applies.
    conditions.push(`e.kind = '${page.kind}'`)
    name.push(page.kind)
  }
  if (page.type !== undefined) {
    conditions.push('e.type = $7')
    name.push('type')
    parameters.push(page.type)
  }
  const text = `
SELECT e.seq, ${COLUMNS[view]}
FROM (
  SELECT e.*, sum(e.bytes) OVER (ORDER BY e.seq ${direction} ROWS UNBOUNDED PRECEDING) - e.bytes AS bytes_before
  FROM (
    SELECT e.* FROM entries e
    WHERE ${conditions.join(' AND ')}
    ORDER BY e.seq ${direction}
    LIMIT $3
  ) e
) e
${view === 'item' ? 'JOIN sessions s ON s.project_id = $1 AND s.id = $2' : ''}
WHERE e.bytes_before = 0 OR e.bytes_before + e.bytes <= $4
ORDER BY e.seq ${direction}`
  return { statement: prepared(name.join('_'), text), parameters }
}

/** The last seqs of the sessions that exist. Parameters: $1 project, $2 sessions. */
export const READ_HEADS = prepared(
  'read_heads',
  'SELECT h.session_id, h.last_seq FROM session_heads h WHERE h.project_id = $1 AND h.session_id = ANY ($2::uuid[])',
)
