import { reconnecting, type StreamOptions } from './reconnecting.js'
import type { Transport } from './transport.js'
import type { TimelineItem, TimelineQuery } from './types.js'

export interface TailOptions extends StreamOptions, Pick<TimelineQuery, 'kind' | 'type'> {
  /**
   * Start after this seq or this entry, the last one seen; without it, at the log's first entry. With an entry, a log
   * that was replaced meanwhile, as by a restore, is refused: 409 `log_diverged`.
   */
  after?: number | Pick<TimelineItem, 'seq' | 'created_at'> | undefined
}

/**
 * Every entry of a session's log after `after`, in order and once, and then each new one as it is stored. A connection
 * that follows another is refused if the last returned entry is another by now.
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
  const { after: seen, kind, type } = options
  const after_seq = typeof seen === 'object' ? seen.seq : seen
  const position = typeof seen === 'object' ? `${seen.seq}@${seen.created_at}` : undefined
  const call = { method: 'GET' as const, path, query: { kind, type, after_seq } }
  let last = after_seq ?? 0
  for await (const { id, data } of reconnecting(transport, { what: 'The tail', call, position }, options)) {
    const seq = Number(id)
    if (!(seq > last)) continue
    last = seq
    yield transport.parse(data) as TimelineItem
  }
}
