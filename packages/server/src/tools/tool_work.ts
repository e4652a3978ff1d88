import type { ChangedEntry } from '@annals/kits/changes/consumer.js'
import { type WorkThread, workAtOnce } from '@annals/kits/threads/work_thread.js'
import { errorExcerpt, errorTemplate } from '@annals/learning'
import {
  type IndexedCall,
  type IndexedPiece,
  type IndexState,
  indexCalls,
  type LogEntry,
} from '@annals/messages/session'

/** `message`: what errors of its kind have in common. */
type StoredCall = IndexedCall & { message: string | null }

export const TOOL_WORK = {
  indexCalls(state: IndexState, entries: ChangedEntry[]): IndexedPiece & { calls: StoredCall[] } {
    const piece = indexCalls(state, entries.map(logEntry), errorExcerpt)
    const calls = piece.calls.map((call) => ({
      ...call,
      message: (call.result !== null && errorTemplate(call.result).toWellFormed()) || null,
    }))
    return { ...piece, calls }
  },
}

type ToolWork = typeof TOOL_WORK

declare module '@annals/kits/threads/work_thread.js' {
  interface ThreadWork extends ToolWork {}
}

/** Reads the next entries of a session; if they are long, off the event loop. */
export type IndexCalls = (
  project_id: string,
  state: IndexState,
  entries: ChangedEntry[],
) => Promise<ReturnType<ToolWork['indexCalls']>>

/** The state of a call is read as fast as this many characters of entries. */
const CALL_LENGTH = 100

export function indexCallsOnThread(thread: WorkThread): IndexCalls {
  return (project_id, state, entries) => {
    const length = entries.reduce((sum, { data }) => sum + data.length, CALL_LENGTH * state.calls.length)
    return workAtOnce(thread, project_id, 'indexCalls', length, state, entries)
  }
}

function logEntry({ kind, seq, id, type, role, format, data, ...times }: ChangedEntry): LogEntry {
  const place = { seq, created_at: times.created_at, occurred_at: times.occurred_at }
  const value = JSON.parse(data)
  if (kind === 'event') return { kind, ...place, type: type!, data: value }
  return { kind, ...place, id, parent_id: null, role: role!, format: format as never, blob: value }
}
