import { isError, readEventData } from '@annals/adapter-kit'
import type { Annals, Session as StoredSession } from '@annals/client'
import type { Event, GetSessionConfig } from '@google/adk'
import { mergeState, type SessionName, scopesOf } from './scopes.js'
import { givenEvent, STATE_PREFIX } from './stored_events.js'

const PAGE_LIMIT = 200

export interface ReadSession {
  /** The seq up to which it shows the log. */
  seq: number
  events: Event[]
  state: Record<string, unknown>
  lastUpdateTime: number
}

/** A stored session, or undefined if it does not exist. */
export async function readSession(
  annals: Annals,
  name: SessionName,
  config: GetSessionConfig = {},
): Promise<ReadSession | undefined> {
  const scopes = scopesOf(name)
  const { use_uuid } = scopes.session
  try {
    // The seq is read first: anything stored in the meantime makes the next append read again.
    const { items } = await annals.sessions.timeline(use_uuid, { time_desc: true, limit: 1 }).page()
    const [stored, events, session, app, user] = await Promise.all([
      annals.sessions.get(use_uuid),
      readEvents(annals, use_uuid, config),
      readState(annals, use_uuid),
      readState(annals, scopes.app.use_uuid),
      readState(annals, scopes.user.use_uuid),
    ])
    const state = mergeState({ session, app, user })
    return { seq: items[0]?.seq ?? 0, events, state, lastUpdateTime: updatedAt(stored) }
  } catch (error) {
    if (!isError(error, 'session_not_found')) throw error
    return undefined
  }
}

/** Milliseconds since 1970, by the service's clock. */
export function updatedAt({ updated_at }: StoredSession): number {
  return Math.floor(Date.parse(updated_at))
}

/** From the newest on, so that few recent events take few requests. Of an event that was changed, the newest counts. */
async function readEvents(
  annals: Annals,
  session_id: string,
  { numRecentEvents, afterTimestamp }: GetSessionConfig,
): Promise<Event[]> {
  const events = new Map<string, Event>()
  const limit = Math.min(1_000, Math.max(20, (numRecentEvents ?? 1_000) * 2))
  for await (const item of annals.sessions.timeline(session_id, { time_desc: true, limit })) {
    if (numRecentEvents && events.size >= numRecentEvents) break
    const event = await givenEvent(annals, session_id, item)
    if (!event || (afterTimestamp && event.timestamp < afterTimestamp)) continue
    const newest = events.get(event.id) ?? event
    // Its place is that of its first version.
    events.delete(event.id)
    events.set(event.id, newest)
  }
  return [...events.values()].reverse()
}

async function readState(annals: Annals, session_id: string): Promise<[string, unknown][]> {
  const state: [string, unknown][] = []
  try {
    const query = { key_prefix: STATE_PREFIX, limit: PAGE_LIMIT }
    for await (const item of annals.sessions.latest(session_id, query)) {
      if (item.kind !== 'event') continue
      const { name, value } = await readEventData(annals, session_id, item)
      state.push([name as string, value])
    }
  } catch (error) {
    if (!isError(error, 'session_not_found')) throw error
  }
  return state
}
