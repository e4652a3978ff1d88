import { AnnalsError, noAnswer, timedOut } from './annals_error.js'
import { EventStreamParser } from './event_stream.js'
import { outcomeOf, pauseBefore } from './retry.js'
import type { Transport } from './transport.js'
import type { TimelineItem, TimelineQuery } from './types.js'
import { after, onAbort, sleep } from './waiting.js'

/** Three times the longest silence that the service allows itself. */
const IDLE_TIMEOUT_MS_DEFAULT = 45_000
/** What errors call it. */
const WHAT = 'The tail'

export interface TailOptions extends Pick<TimelineQuery, 'kind' | 'type'> {
  /** Begin behind this seq: the last one that was seen. Without it the tail begins at the log's first entry. */
  after?: number | undefined
  /** Ends the tail, without an error. */
  signal?: AbortSignal | undefined
  /** How long a connection may be silent before it counts as broken: 45,000 ms unless given. */
  idle_timeout_ms?: number | undefined
  /** Told of each connection that was made. */
  on_connect?: (() => void) | undefined
  /** Told of each connection that could not be made or broke. The tail goes on by itself. */
  on_disconnect?: ((error: AnnalsError) => void) | undefined
}

/**
 * Every entry of a session's log behind `after`, in order and each once, and then each new one as it is stored.
 *
 *   connecting ──► reading ──► pausing ──► connecting …
 *
 * The seq that was given last is all that outlives a connection: the next one asks for what is behind it.
 *
 * Ends when the signal aborts. A service that does not answer is given up after the client's `retries`, unless it
 * has answered before: then the tail waits for it as long as it takes.
 * @throws AnnalsError when the service refuses: 401, 403, 404 and the like
 */
export async function* tail(
  transport: Transport,
  path: string[],
  options: TailOptions,
): AsyncGenerator<TimelineItem, void, undefined> {
  const { after: after_seq, kind, type, signal } = options
  const call = { method: 'GET' as const, path, query: { kind, type, after_seq } }
  const state: State = { seq: after_seq ?? 0, failures: 0, has_answered: false, retry_ms: undefined }
  while (!signal?.aborted) {
    let lost: AnnalsError
    try {
      yield* readUntilLost(transport, call, options, state)
      lost = noAnswer(WHAT, 'the server ended the stream')
    } catch (error) {
      if (signal?.aborted) return
      if (!(error instanceof AnnalsError)) throw error
      lost = error
    }
    if (signal?.aborted) return
    state.failures += 1
    const passes = outcomeOf(lost) !== 'final' || lost.status >= 500
    if (!passes || (!state.has_answered && state.failures > transport.retries)) throw lost
    options.on_disconnect?.(lost)
    // Only the signal ends the pause early, and then the loop ends too.
    await sleep(pauseBefore(state.failures, lost, state.retry_ms), signal).catch(() => {})
  }
}

interface State {
  /** The seq that was given last. */
  seq: number
  /** Connections in a row that brought nothing. */
  failures: number
  has_answered: boolean
  /** The pause that the server asked for. */
  retry_ms: number | undefined
}

async function* readUntilLost(
  transport: Transport,
  call: { method: 'GET'; path: string[]; query: object & { after_seq: number | undefined } },
  { signal, idle_timeout_ms = IDLE_TIMEOUT_MS_DEFAULT, on_connect }: TailOptions,
  state: State,
): AsyncGenerator<TimelineItem, void, undefined> {
  const connection = new AbortController()
  const unfollow = onAbort(signal, (reason) => connection.abort(reason))
  /** Waits for the next sign of life. No time runs while the tail's user is busy. */
  const hear = async <T>(next: Promise<T>): Promise<T> => {
    const cancel = after(idle_timeout_ms, () => connection.abort(timedOut(WHAT, idle_timeout_ms)))
    try {
      return await next
    } catch (error) {
      throw connection.signal.aborted ? connection.signal.reason : error
    } finally {
      cancel()
    }
  }
  try {
    const headers: Record<string, string> = {}
    if (state.seq > (call.query.after_seq ?? 0)) headers['last-event-id'] = String(state.seq)
    const response = await hear(transport.open(call, headers, connection.signal))
    state.has_answered = true
    on_connect?.()
    const parser = new EventStreamParser()
    const reader = response.body!.getReader()
    for (;;) {
      const { done, value } = await hear(reader.read().catch(rethrowAsBroken))
      if (done) return
      state.failures = 0
      for (const { id, data } of parser.read(value)) {
        const seq = Number(id)
        if (!(seq > state.seq)) continue
        state.seq = seq
        yield transport.parse(data) as TimelineItem
        if (signal?.aborted) return
      }
      state.retry_ms = parser.retry_ms ?? state.retry_ms
    }
  } finally {
    unfollow()
    connection.abort()
  }
}

function rethrowAsBroken(error: unknown): never {
  throw noAnswer(WHAT, error)
}
