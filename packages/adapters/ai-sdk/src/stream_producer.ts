import { setTimeout as sleep } from 'node:timers/promises'
import { BODY_BYTES_MAX, cutIntoBatches, isError } from '@annals/adapter-kit'
import type { Annals, NewEntry } from '@annals/client'
import { chunksEvent, endEvent, type StreamEnd } from './stored_streams.js'

/** What comes within so many ms of a first chunk is stored with it. */
const BATCH_MS = 50
/** Most UTF-16 units of one event. One takes 6 bytes at most, as an escape, and an event must fit into a body. */
const EVENT_UNITS_MAX = 100 * 1024
/** How long an append is retried while the service is away. */
const AWAY = { timeout_ms: 120_000, retries: 1_000 }

/**
 * Stores a stream that has begun until it ends, or somebody else has ended it: then the source is cancelled. Something is
 * stored every `alive_ms`.
 * @returns false if somebody else ended it
 * @throws AnnalsError if the service did not take it; readers find the stream interrupted
 */
export async function produce(
  annals: Annals,
  session_id: string,
  source: ReadableStream<string>,
  alive_ms: number,
): Promise<boolean> {
  const reader = source.getReader()
  const readNext = () =>
    reader.read().then(
      ({ value }) => ({ value, end: 'done' as const }),
      () => ({ value: undefined, end: 'failed' as const }),
    )
  let [if_match, next] = [1, readNext()]
  let end: StreamEnd | undefined
  /** What comes within a batch's time after the first chunk; nothing if none comes in time. */
  const collect = async (): Promise<string> => {
    let [text, until] = ['', performance.now() + alive_ms]
    while (text.length < BODY_BYTES_MAX) {
      const timer = new AbortController()
      const late = sleep(Math.max(until - performance.now(), 0), undefined, timer).catch(() => undefined)
      const got = await Promise.race([next, late]).finally(() => timer.abort())
      end = got && got.value === undefined ? got.end : undefined
      if (got?.value === undefined) break
      next = readNext()
      if (text === '') until = performance.now() + BATCH_MS
      text += got.value
    }
    return text
  }
  try {
    while (end === undefined) {
      const entries = entriesOf(session_id, await collect(), end)
      for (const batch of cutIntoBatches(entries)) {
        const { items } = await annals.sessions.appendBatch(session_id, batch, { ...AWAY, if_match })
        if_match = items.at(-1)!.seq
      }
    }
    return true
  } catch (error) {
    reader.cancel(error).catch(() => {})
    if (isError(error, 'seq_conflict', 'session_not_found')) return false
    throw error
  }
}

function entriesOf(session_id: string, text: string, end: StreamEnd | undefined): NewEntry[] {
  const entries = end === undefined ? [] : [endEvent(session_id, end)]
  for (let to = text.length; to > 0; to -= EVENT_UNITS_MAX)
    entries.unshift(chunksEvent(text.slice(Math.max(to - EVENT_UNITS_MAX, 0), to)))
  return entries.length > 0 ? entries : [chunksEvent()]
}
