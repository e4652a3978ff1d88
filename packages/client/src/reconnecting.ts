import { AnnalsError, noAnswer, timedOut } from './annals_error.js'
import { EventStreamParser, type StreamEvent } from './event_stream.js'
import { outcomeOf, pauseBefore } from './retry.js'
import type { Call, Transport } from './transport.js'
import { after, onAbort, sleep } from './waiting.js'

/** Three times the longest interval between the service's heartbeats. */
const IDLE_TIMEOUT_MS_DEFAULT = 45_000

/** How a stream that reconnects is watched and ended. */
export interface StreamOptions {
  /** Ends the stream, without an error. */
  signal?: AbortSignal | undefined
  /** How long a connection may be silent before it counts as broken, in ms; default 45,000. */
  idle_timeout_ms?: number | undefined
  /** Called for each connection that was made. */
  on_connect?: (() => void) | undefined
  /** Called for each connection that failed or broke. The stream reconnects by itself. */
  on_disconnect?: ((error: AnnalsError) => void) | undefined
}

interface Stream {
  /** Its name in errors. */
  what: string
  call: Call
  /** The id of the last event that was seen. */
  position: string | undefined
}

/**
 * The events of a stream, across broken connections and tokens that expire.
 *
 *   connecting ──► reading ──► pausing ──► connecting …
 *
 * The position of the last returned event is the only state that outlives a connection: the next one asks for what
 * follows it.
 *
 * Ends when the signal aborts. If the service does not answer at first, the stream fails after the client's `retries`;
 * after the first answer it keeps reconnecting without limit.
 * @throws AnnalsError if the service refuses
 */
export async function* reconnecting(
  transport: Transport,
  stream: Stream,
  options: StreamOptions,
): AsyncGenerator<StreamEvent, void, undefined> {
  const { signal } = options
  const state: State = {
    position: stream.position,
    failures: 0,
    has_answered: false,
    retry_ms: undefined,
  }
  while (!signal?.aborted) {
    let lost: AnnalsError
    try {
      // The service ends a stream for another token to go on with it.
      if (yield* readUntilLost(transport, stream, options, state)) continue
      lost = noAnswer(stream.what, 'the server ended the stream')
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
    // Only the signal ends the pause early, which also ends the loop.
    await sleep(pauseBefore(state.failures, lost, state.retry_ms), signal).catch(() => {})
  }
}

interface State {
  position: string | undefined
  /** Consecutive connections without any event. */
  failures: number
  has_answered: boolean
  /** The pause that the server asked for. */
  retry_ms: number | undefined
}

/** Returns whether the token was renewed since the last event. */
async function* readUntilLost(
  transport: Transport,
  { what, call }: Stream,
  { signal, idle_timeout_ms = IDLE_TIMEOUT_MS_DEFAULT, on_connect }: StreamOptions,
  state: State,
): AsyncGenerator<StreamEvent, boolean, undefined> {
  const connection = new AbortController()
  const unfollow = onAbort(signal, (reason) => connection.abort(reason))
  /** Waits for the next bytes. The timer does not run while the stream's user is busy. */
  const hear = async <T>(next: Promise<T>): Promise<T> => {
    const cancel = after(idle_timeout_ms, () => connection.abort(timedOut(what, idle_timeout_ms)))
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
    if (state.position) headers['last-event-id'] = state.position
    const response = await hear(transport.open(call, headers, connection.signal))
    state.has_answered = true
    on_connect?.()
    const parser = new EventStreamParser()
    const reader = response.body!.getReader()
    const broken = (error: unknown) => {
      throw noAnswer(what, error)
    }
    for (let has_renewed = false; ; ) {
      const { done, value } = await hear(reader.read().catch(broken))
      if (done) return has_renewed
      state.failures = 0
      for (const event of parser.read(value)) {
        if (event.type === 'renew') {
          await transport.renew()
          has_renewed = true
          continue
        }
        has_renewed = false
        state.position = event.id || state.position
        yield event
        if (signal?.aborted) return false
      }
      state.position = parser.last_id || state.position
      state.retry_ms = parser.retry_ms ?? state.retry_ms
    }
  } finally {
    unfollow()
    connection.abort()
  }
}
