/** What of an entry is shown: `data` and `meta` are JSON text, times RFC 3339 in UTC with microseconds. */
export interface ShownEntry {
  seq: number
  id: string
  kind: 'event' | 'message'
  /** Of an event. */
  type: string | null
  /** What else a message has. */
  format: string | null
  role: string | null
  parent_id: string | null
  /** These are shown only if set. */
  key?: string | null
  /** When it happened, if its caller said so. */
  occurred_at?: string | null
  /** The seq of the event that retracted it. */
  retracted_by?: number | null
  meta: string | null
  /** An event's data or a message's blob. */
  data: string
  created_at: string
  updated_at: string
}

/** The log that an entry is shown in. */
export interface ShownLog {
  project_id: string
  session_id: string
  disable_task_tracking: boolean
}

/** An item of the timeline, in which a message has its format and blob; or a SessionEvent, or a Message without its parts. */
export type EntryShape = 'item' | 'resource'

/** Writes an entry as JSON: the one place that knows the fields of events and messages, for appends and reads. */
export function entryJson(shape: EntryShape, log: ShownLog, entry: ShownEntry): string {
  const { seq, id, kind, data } = entry
  const key = entry.key ? `"key":${JSON.stringify(entry.key)},` : ''
  const occurred = entry.occurred_at ? `"occurred_at":"${entry.occurred_at}",` : ''
  const mark = entry.retracted_by ? `,"retracted_by":${entry.retracted_by}` : ''
  const times = `${key}${occurred}"created_at":"${entry.created_at}","updated_at":"${entry.updated_at}"${mark}`
  if (kind === 'event') {
    const fields = `"id":"${id}","project_id":"${log.project_id}","session_id":"${log.session_id}","type":${JSON.stringify(entry.type)},"data":${data}`
    return shape === 'item'
      ? `{"kind":"event","seq":${seq},${fields},${times}}`
      : `{${fields},"seq":${seq},${times}}`
  }
  const parent = entry.parent_id === null ? 'null' : `"${entry.parent_id}"`
  const status = log.disable_task_tracking ? 'disable_tracking' : 'pending'
  const fields = `"id":"${id}","session_id":"${log.session_id}","parent_id":${parent},"role":"${entry.role}","meta":${entry.meta},"task_id":null,"session_task_process_status":"${status}"`
  return shape === 'item'
    ? `{"kind":"message","seq":${seq},${fields},"format":"${entry.format}","blob":${data},${times}}`
    : `{"seq":${seq},${fields},${times}}`
}
