import type { Row } from '@annals/kits/postgres/database.js'
import { COMPACTION_TYPE } from '@annals/messages/context'
import type { LogEntry } from '@annals/messages/session'

/** Entries to learn from; not compactions, whose contents were learnt from the original entries. */
export function* logEntries(rows: Row[]): Generator<LogEntry> {
  for (const { seq, id, kind, type, role, format, created_at, data } of rows) {
    if (data === null || type === COMPACTION_TYPE) continue
    const place = { seq: Number(seq), created_at: created_at! }
    const value = JSON.parse(data!)
    if (kind === 'event') yield { kind, ...place, type: type!, data: value }
    else
      yield {
        kind: 'message',
        ...place,
        id: id!,
        parent_id: null,
        role: role!,
        format: format as never,
        blob: value,
      }
  }
}

/** Where rows have no data: there was no room for an entry. */
export function unreadSeqs(rows: readonly Row[]): number[] {
  return rows.filter(({ data }) => data === null).map(({ seq }) => Number(seq))
}
