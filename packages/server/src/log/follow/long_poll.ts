import type { FastifyReply } from 'fastify'
import type { UsageDirectory } from '../../projects/usage.js'
import { refuseTail } from '../../projects/within_quotas.js'
import type { Feed } from './feed.js'

/** Between two tries that found what they asked for held by somebody else for a moment. */
const SHORT_PAUSE_MS = 20

/** The outcome of one try: its answer, and if that may change, in how many ms at the latest. */
export interface Tried<T> {
  answer: T
  /** Undefined: this is the answer. Null: nobody knows. 0: at once, whatever `wait_ms` is. */
  again_ms?: number | null | undefined
}

/**
 * Tries until there is an answer or `wait_ms` is over; between two tries it holds no connection, and counts as a tail of
 * the project. It tries again when the feed tells of `name`, when a try said so, and at each poll of the feed. It ends with
 * the last answer when the client is gone or the service stops.
 */
export async function longPoll<T>(
  { feed, usage }: { feed: Feed; usage: UsageDirectory },
  reply: FastifyReply,
  { name, wait_ms }: { name: string; wait_ms: number },
  attempt: () => Promise<Tried<T>>,
): Promise<T> {
  const { request } = reply
  const first = await attempt()
  if (first.again_ms === undefined || (wait_ms === 0 && first.again_ms !== 0)) return first.answer
  if (wait_ms > 0) refuseTail(request, usage)
  const subscription = feed.subscribe(request.project_id, name, -1)
  const onClose = () => subscription.end()
  reply.raw.on('close', onClose)
  const deadline = performance.now() + Math.max(wait_ms, 10 * SHORT_PAUSE_MS)
  try {
    // Events before the subscription were not heard.
    for (let tried = await attempt(); ; tried = await attempt()) {
      const left_ms = deadline - performance.now()
      if (tried.again_ms === undefined || left_ms <= 0 || subscription.ended) return tried.answer
      if (wait_ms === 0 && tried.again_ms !== 0) return tried.answer
      await subscription.changed(Math.min(left_ms, Math.max(tried.again_ms ?? left_ms, SHORT_PAUSE_MS)))
    }
  } finally {
    reply.raw.off('close', onClose)
    subscription.close()
  }
}
