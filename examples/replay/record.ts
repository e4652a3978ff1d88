import type { AnnalsApi } from './annals_api.ts'
import { entriesOf, type PlannedEntry, type Run, type StoreAs } from './runs.ts'

/** A run that has been stored, and what the server answered while it was. */
export interface RecordedRun {
  run: Run
  session_id: string
  user_id: string | null
  created_at: string
  /** As the session's entries should be read back: the one with seq 1 first. */
  entries: Array<PlannedEntry & { id: string }>
}

/**
 * Stores a run: a session, then its entries one after the other, since their order is what is recorded.
 * `replay_id` makes the idempotency keys this replay's own.
 */
export async function recordRun(
  api: AnnalsApi,
  run: Run,
  store_as: StoreAs,
  replay_id: string,
  differences: string[],
): Promise<RecordedRun> {
  const key = `replay-${replay_id}/${run.line}`
  const session = await api.createSession(run.user, run.configs, key)
  const entries: RecordedRun['entries'] = []
  for (const [index, entry] of entriesOf(run, store_as).entries()) {
    const seq = index + 1
    const stored =
      entry.kind === 'message'
        ? await api.addMessage(session.id, entry.data, `${key}/${seq}`)
        : await api.addEvent(session.id, entry.type ?? '', entry.data, `${key}/${seq}`)
    if (stored.seq !== seq)
      differences.push(`Entry ${seq} of session ${session.id} was answered with seq ${stored.seq}`)
    entries.push({ ...entry, id: stored.id })
  }
  return { run, session_id: session.id, user_id: session.user_id, created_at: session.created_at, entries }
}
