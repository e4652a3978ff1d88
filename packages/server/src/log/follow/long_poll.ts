import { SharedTries } from '@annals/kits/fairness/shared_tries.js'
import type { FastifyReply } from 'fastify'
import type { UsageDirectory } from '../../projects/usage.js'
import { refuseTail } from '../../projects/within_quotas.js'
import type { Feed } from './feed.js'

/** Between two tries that found the row locked by another request. */
const SHORT_PAUSE_MS = 20

/** The outcome of one try: its answer, and if that may change, in how many ms at the latest. */
export interface Tried<T> {
  answer: T
  /** Undefined: this is the answer. Null: nobody knows. 0: at once, whatever `wait_ms` is. */
  again_ms?: number | null | undefined
}

const tries = new SharedTries<Tried<unknown>>()

/**
 * Tries until there is an answer or `wait_ms` is over; between two tries it holds no connection, and counts as a tail of
 * the project. It tries again when the feed tells of `name`, when a try said so, and at each poll of the feed. It ends with
 * the last answer when the client is gone or the service stops. Those who wait for the same `what` try for it together, and
 * share a refusal, unless `isMine` says that it names the caller, who would not be refused.
 */
export async function longPoll<T>(
  { feed, usage }: { feed: Feed; usage: UsageDirectory },
  reply: FastifyReply,
  polled: { name: string; wait_ms: number; what: string; isMine?: (answer: T) => boolean },
  attempt: () => Promise<Tried<T>>,
): Promise<T> {
  const { request } = reply
  const { name, wait_ms, what, isMine } = polled
  const first = await attempt()
  if (first.again_ms === undefined || (wait_ms === 0 && first.again_ms !== 0)) return first.answer
  if (wait_ms > 0) refuseTail(request, usage)
  const subscription = feed.subscribe(request.project_id, name, -1)
  const onClose = () => subscription.end()
  reply.raw.on('close', onClose)
  if (reply.raw.destroyed) onClose()
  const isNothing = ({ answer, again_ms }: Tried<unknown>) => again_ms !== undefined && !isMine?.(answer as T)
  const deadline = performance.now() + Math.max(wait_ms, 10 * SHORT_PAUSE_MS)
  let tried = first
  try {
    // The first one heard of no event. Nobody tries for a client that is gone: it would be given what others wait for.
    while (!subscription.ended) {
      const together = await tries.try(what, attempt, () => subscription.ended, isNothing)
      tried = (together as Tried<T> | undefined) ?? tried
      const left_ms = deadline - performance.now()
      const is_over = left_ms <= 0 || (wait_ms === 0 && tried.again_ms !== 0)
      if (tried.again_ms === undefined || is_over) break
      await subscription.changed(Math.min(left_ms, Math.max(tried.again_ms ?? left_ms, SHORT_PAUSE_MS)))
    }
    return tried.answer
  } finally {
    reply.raw.off('close', onClose)
    subscription.close()
  }
}
