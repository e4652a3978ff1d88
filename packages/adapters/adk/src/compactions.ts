import { escapeJson, isError, stableId } from '@annals/adapter-kit'
import type { Annals } from '@annals/client'
import { type Event, isCompactedEvent } from '@google/adk'
import { givenEvent } from './stored_events.js'

const PAGE_LIMIT = 200

/**
 * Lets what a compaction of ADK says stand for the events that it is about, so that contexts begin with it. Where the
 * service refuses that, for example because a call would be parted from its result, contexts stay as they were: ADK's own
 * event is stored in any case.
 */
export async function compactTo(
  annals: Annals,
  session_id: string,
  event: Event,
  known: Event[],
): Promise<void> {
  if (!isCompactedEvent(event)) return
  const to_seq = await lastSeqAt(annals, session_id, event.endTime)
  if (to_seq === 0) return
  const all = [...known.filter(isCompactedEvent).filter(({ id }) => id !== event.id), event]
  // One that goes further back and as far stands for the other as well.
  const kept = all.filter(
    (one, at) =>
      !all.some(
        (other, index) => index > at && other.startTime <= one.startTime && other.endTime >= one.endTime,
      ),
  )
  const parts = kept.map(({ compactedContent }) => ({ text: compactedContent }))
  const summary = { format: 'gemini' as const, blob: escapeJson({ role: 'user', parts }) }
  try {
    const options = { idempotency_key: stableId(session_id, 'adk/compaction', event.id) }
    await annals.sessions.compact(session_id, { to_seq, summary, by: 'adk' }, options)
  } catch (error) {
    if (!isError(error, 'invalid_request') && !isError(error, 'idempotency_key_reused')) throw error
  }
}

/** The seq of the newest event of ADK that is not later than a time; 0 if there is none. */
async function lastSeqAt(annals: Annals, session_id: string, time: number): Promise<number> {
  for await (const item of annals.sessions.timeline(session_id, { time_desc: true, limit: PAGE_LIMIT })) {
    const event = await givenEvent(annals, session_id, item)
    if (event && !isCompactedEvent(event) && event.timestamp <= time) return item.seq
  }
  return 0
}
