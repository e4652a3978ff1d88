import type { Answer } from './http.ts'

const EXPECTED = new Set([200, 201, 409, 503])

/** Counts what the clients were answered, and keeps what no client should ever be answered. */
export class Traffic {
  requests = 0
  readonly by_status = new Map<string, number>()
  /** Answers that are neither success, nor refusal on a condition, nor "try again": with how often they came. */
  readonly unexpected = new Map<string, number>()

  count(answer: Answer, what: string): void {
    const { status, error, retry_after } = answer
    this.requests += 1
    add(this.by_status, status === undefined ? 'unanswered' : String(status))
    if (status === undefined) return
    if (!EXPECTED.has(status)) add(this.unexpected, `${status} ${error} to ${what}`)
    if (status === 503 && !retry_after) add(this.unexpected, `503 without Retry-After to ${what}`)
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
