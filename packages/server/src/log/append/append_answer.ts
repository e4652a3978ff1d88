import type { Row } from '../../postgres/database.js'
import { entryJson } from '../entry_json.js'
import {
  type AppendAnswer,
  type AppendedEntry,
  type AppendRequest,
  RETRACTION_TYPE,
} from './append_request.js'

/** What the answer adds to what was sent. */
export interface StoredPlace {
  seq: number
  /** RFC 3339 in UTC with microseconds. */
  time: string
  /** Of a message: the previous message. */
  parent_id: string | null
  disable_task_tracking: boolean
}

type AnsweredEntry = Pick<AppendedEntry, 'id' | 'kind' | 'type' | 'format' | 'role' | 'key' | 'data' | 'meta'>

/**
 * Writes the answer to an append: for a single entry the resource itself (a message without its parts, which its
 * route adds), in a batch a timeline item, which a retraction is not. It is written from what was sent, so that the
 * database need not return it.
 */
export function appendAnswer(
  { project_id, kind: kind_of_request }: AppendRequest,
  session_id: string,
  entry: AnsweredEntry,
  stored: StoredPlace,
): string {
  const { seq, time, parent_id, disable_task_tracking } = stored
  const { id, kind, type, format, role, key, data, meta } = entry
  return entryJson(
    kind_of_request === 'entries' && type !== RETRACTION_TYPE ? 'item' : 'resource',
    { project_id, session_id, disable_task_tracking },
    { seq, id, kind, type, format, role, key, data, meta, parent_id, created_at: time, updated_at: time },
  )
}

/** The answer for an entry that was stored earlier, from its row of READ_APPENDED_ENTRIES. */
export function storedAnswer(request: AppendRequest, session_id: string, row: Row): AppendAnswer {
  const kind = row.kind as AppendedEntry['kind']
  const seq = Number(row.seq)
  const entry = {
    id: row.id!,
    kind,
    type: row.type!,
    format: row.format!,
    role: row.role!,
    key: row.key!,
    data: row.data!,
    meta: row.meta!,
  }
  const disable_task_tracking = row.disable_task_tracking === 't'
  const stored = { seq, time: row.time!, parent_id: row.parent_id!, disable_task_tracking }
  const json = appendAnswer(request, session_id, entry, stored)
  return kind === 'event'
    ? { seq, json }
    : { seq, json, id: entry.id, blob: entry.data, format: entry.format }
}
