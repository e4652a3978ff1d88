import type { AppendOutcome, AppendRequest } from './append_request.js'

/** A request that waits for its answer. */
export interface PendingAppend {
  readonly request: AppendRequest
  readonly bytes: number
  /** performance.now() when it was accepted, in ms. */
  readonly enqueued_at: number
  /** The result of AppenderOptions.originOf at that time. */
  readonly origin?: unknown
  /** Repeats with the same idempotency key that arrived meanwhile: they share this one's result. */
  readonly followers: PendingAppend[]
  resolve(outcome: AppendOutcome): void
  reject(error: unknown): void
}

/** The sessions that requests append to. */
export function sessionsOf(pending: readonly PendingAppend[]): Set<string> {
  const sessions = new Set<string>()
  for (const { request } of pending) {
    if (!request.appends) sessions.add(request.session_id)
    else for (const { session_id } of request.appends) sessions.add(session_id)
  }
  return sessions
}

/** Answers a request, and its repeats as replays. */
export function succeed(pending: PendingAppend, outcome: AppendOutcome): void {
  pending.resolve(outcome)
  for (const follower of pending.followers) follower.resolve({ ...outcome, replayed: true })
}

/** Refuses a request and its repeats. */
export function fail(pending: PendingAppend, error: unknown): void {
  pending.reject(error)
  for (const follower of pending.followers) follower.reject(error)
}
