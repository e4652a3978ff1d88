import { forkedAsBatch } from '../../lab/batch_policy.ts'
import { orderOf } from '../../lab/other_process.ts'
import type { Answers, AttackOrder } from './ground.ts'

/** An attack that has not ended by then is ended. */
const OVERTIME_MS_MAX = 15_000

/** Has a process of its own attack; gives how it was answered. */
export function strike(order: AttackOrder, stopped: AbortSignal): Promise<Answers> {
  const late = AbortSignal.timeout(order.seconds * 1_000 + OVERTIME_MS_MAX)
  return orderOf<Answers>(new URL('./process.js', import.meta.url), order, {
    ...forkedAsBatch(),
    signal: AbortSignal.any([late, stopped]),
    killSignal: 'SIGKILL',
  })
}
