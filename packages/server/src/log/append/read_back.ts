import { AppendInDoubt, notFound } from '../../errors.js'
import type { Database, Row } from '../../postgres/database.js'
import { entryJson } from '../entry_json.js'
import {
  type AppendAnswer,
  type AppendOutcome,
  type AppendRequest,
  appendsOf,
  fail,
  type PendingAppend,
  shapeOf,
  succeed,
} from './append_request.js'
import { READ_APPENDED_ENTRIES } from './known_append_queries.js'

/** Answers a request with stored entries, by their seqs. Never throws. */
export async function readBack(
  database: Database,
  pending: PendingAppend,
  seqs: string[],
  outcome: Omit<AppendOutcome, 'entries'>,
): Promise<void> {
  try {
    const { request } = pending
    const entries: AppendAnswer[] = []
    for (const [index, append] of appendsOf(request).entries()) {
      const { session_id } = append
      const own = seqs.slice(entries.length, entries.length + append.entries.length)
      const rows = await database.query(READ_APPENDED_ENTRIES, [request.project_id, session_id, own])
      if (rows.length < own.length) {
        fail(pending, notFound('session', request.appends && `/appends/${index}/session_id`))
        return
      }
      entries.push(...rows.map((row) => storedAnswer(request, session_id, row)))
    }
    succeed(pending, { ...outcome, entries })
  } catch (error) {
    // The entries are stored, and only the answer could not be read, so "nothing was stored" would be wrong.
    fail(pending, new AppendInDoubt('the stored entries could not be read back', { cause: error }))
  }
}

/** The answer for an entry that was stored earlier, from its row of READ_APPENDED_ENTRIES. */
function storedAnswer(request: AppendRequest, session_id: string, row: Row): AppendAnswer {
  const disable_task_tracking = row.disable_task_tracking === 't'
  const { kind, id, data, format } = row as { kind: 'event' | 'message' } & Record<string, string>
  const seq = Number(row.seq)
  const json = entryJson(
    shapeOf(request, row.type!),
    { project_id: request.project_id, session_id, disable_task_tracking },
    {
      ...{
        seq,
        id: id!,
        kind,
        type: row.type!,
        format: format!,
        role: row.role!,
        key: row.key!,
        occurred_at: row.occurred_at!,
        data: data!,
      },
      ...{ meta: row.meta!, parent_id: row.parent_id!, created_at: row.time!, updated_at: row.time! },
    },
  )
  return kind === 'event' ? { seq, json } : { seq, json, id: id!, blob: data!, format: format! }
}
