import type { AnnalsApi } from './annals_api.ts'
import { eventsOf, type PlannedEvent, type Run } from './runs.ts'

/** A run that has been stored, and what the server answered while it was. */
export interface RecordedRun {
  run: Run
  session_id: string
  user_id: string | null
  created_at: string
  /** As the session's events should be read back: the one with seq 1 first. */
  events: Array<PlannedEvent & { id: string }>
}

/**
 * Stores a run: a session, then its events one after the other, since their order is what is recorded.
 * `replay_id` makes the idempotency keys this replay's own.
 */
export async function recordRun(
  api: AnnalsApi,
  run: Run,
  replay_id: string,
  differences: string[],
): Promise<RecordedRun> {
  const key = `replay-${replay_id}/${run.line}`
  const session = await api.createSession(run.user, run.configs, key)
  const events: RecordedRun['events'] = []
  for (const [index, { type, data }] of eventsOf(run).entries()) {
    const seq = index + 1
    const event = await api.addEvent(session.id, type, data, `${key}/${seq}`)
    if (event.seq !== seq)
      differences.push(`Event ${seq} of session ${session.id} was answered with seq ${event.seq}`)
    events.push({ id: event.id, type, data })
  }
  return { run, session_id: session.id, user_id: session.user_id, created_at: session.created_at, events }
}
