import { AnnalsError, noAnswer, timedOut } from './annals_error.js'
import { EventStreamParser } from './event_stream.js'
import { outcomeOf, pauseBefore } from './retry.js'
import type { Transport } from './transport.js'
import type { TimelineItem, TimelineQuery } from './types.js'
import { after, onAbort, sleep } from './waiting.js'

/** Three times the longest interval between the service's heartbeats. */
const IDLE_TIMEOUT_MS_DEFAULT = 45_000
/** Its name in errors. */
const WHAT = 'The tail'

export interface TailOptions extends Pick<TimelineQuery, 'kind' | 'type'> {
  /**
   * Start after this seq or this entry, the last one seen; without it, at the log's first entry. With an entry, a log
   * that was replaced meanwhile, as by a restore, is refused: 409 `log_diverged`.
   */
  after?: number | Pick<TimelineItem, 'seq' | 'created_at'> | undefined
  /** Ends the tail, without an error. */
  signal?: AbortSignal | undefined
  /** How long a connection may be silent before it counts as broken, in ms; default 45,000. */
  idle_timeout_ms?: number | undefined
  /** Called for each connection that was made. */
  on_connect?: (() => void) | undefined
  /** Called for each connection that failed or broke. The tail reconnects by itself. */
  on_disconnect?: ((error: AnnalsError) => void) | undefined
}

/**
 * Every entry of a session's log after `after`, in order and once, and then each new one as it is stored.
 *
 *   connecting ──► reading ──► pausing ──► connecting …
 *
 * The position of the last returned entry is the only state that outlives a connection: the next one asks for what
 * follows it, and is refused if that entry is another by now.
 *
 * Ends when the signal aborts. If the service does not answer at first, the tail fails after the client's `retries`;
 * after the first answer it keeps reconnecting without limit.
 * @throws AnnalsError if the service refuses: 401, 403, 404, 409 `seq_ahead` or `log_diverged` after a restore, and the like
 */
export async function* tail(
  transport: Transport,
  path: string[],
  options: TailOptions,
): AsyncGenerator<TimelineItem, void, undefined> {
  const { after: seen, kind, type, signal } = options
  const after_seq = typeof seen === 'object' ? seen.seq : seen
  const position = typeof seen === 'object' ? `${seen.seq}@${seen.created_at}` : undefined
  const call = { method: 'GET' as const, path, query: { kind, type, after_seq } }
  const state: State = {
    seq: after_seq ?? 0,
    position,
    failures: 0,
    has_answered: false,
    retry_ms: undefined,
  }
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
    // Only the signal ends the pause early, which also ends the loop.
    await sleep(pauseBefore(state.failures, lost, state.retry_ms), signal).catch(() => {})
  }
}

interface State {
  /** The last returned seq. */
  seq: number
  /** It, and when that entry was stored, as the service writes it. */
  position: string | undefined
  /** Consecutive connections without any entry. */
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
  /** Waits for the next bytes. The timer does not run while the tail's user is busy. */
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
    if (state.position) headers['last-event-id'] = state.position
    const response = await hear(transport.open(call, headers, connection.signal))
    state.has_answered = true
    on_connect?.()
    const parser = new EventStreamParser()
    const reader = response.body!.getReader()
    for (;;) {
      const { done, value } = await hear(reader.read().catch(rethrowAsBroken))
      if (done) return
      state.failures = 0
      for (const { id, type, data } of parser.read(value)) {
        if (type === 'renew') {
          await transport.renew()
          continue
        }
        const seq = Number(id)
        if (!(seq > state.seq)) continue
        state.seq = seq
        state.position = id
        yield transport.parse(data) as TimelineItem
        if (signal?.aborted) return
      }
      state.position = parser.last_id || state.position
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
