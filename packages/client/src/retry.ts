import type { AnnalsError } from './annals_error.js'

const PAUSE_MS_MIN = 200
const PAUSE_MS_MAX = 5_000

/**
 * The outcome of a write whose attempt failed, as far as it is known.
 *
 * - `refused`: the service says that it did nothing and that waiting helps;
 * - `unknown`: it may have been done: the answer was lost, or something between us and the service answered;
 * - `final`: a retry would get the same answer.
 */
export type Outcome = 'refused' | 'unknown' | 'final'

export function outcomeOf({ status, error }: AnnalsError): Outcome {
  if (error === 'connection_failed' || error === 'timeout') return 'unknown'
  if (status === 502 || status === 504) return 'unknown'
  if (status === 429 || status === 503) return error === 'unexpected_answer' ? 'unknown' : 'refused'
  return 'final'
}

/**
 * ms to wait before attempt `attempt` + 1: exponential backoff with jitter, and never less than the server asked for.
 */
export function pauseBefore(attempt: number, error?: AnnalsError, ms_min = PAUSE_MS_MIN): number {
  const pause = Math.min(ms_min * 2 ** (attempt - 1), Math.max(PAUSE_MS_MAX, ms_min))
  return (error?.retryAfter ?? 0) * 1000 + pause * (0.5 + Math.random() / 2)
}
