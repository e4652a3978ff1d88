import type { ContextMessage } from './context_message.js'

/** A call, from its message to that of its last result; or a result that was stored before it, up to the call. */
interface CallSpan {
  call: number
  /** Infinity while a result is awaited. */
  end: number
}

/** Where a log may be divided instead of a place that would part calls from their results; undefined: nowhere there. */
export interface NearestPlaces {
  before: number
  after: number | undefined
}

/**
 * Follows the messages of a log, and knows between which of them a call is on its way to its result. A call without a
 * result awaits one until its user says something again: by then the run that made it was given up.
 */
export class CallSpans {
  private readonly calls = new Map<string, number>()
  private readonly unanswered = new Map<string, number>()
  /** Results whose calls have not come. */
  private readonly early = new Map<string, number>()
  private readonly spans: CallSpan[] = []
  private user_seq = 0

  /** Calls and results so far. */
  uses = 0

  /** Takes the next message, in order of seq. */
  add({ seq, speaker, calls, results }: ContextMessage): void {
    this.uses += calls.length + results.length
    for (const { id } of calls) {
      if (id === '') continue
      this.calls.set(id, seq)
      const result = this.early.get(id)
      if (result !== undefined && result > this.user_seq) this.spans.push({ call: result, end: seq })
      else this.unanswered.set(id, seq)
      this.early.delete(id)
    }
    for (const { id } of results) {
      const call = this.calls.get(id)
      if (call === undefined) {
        this.early.set(id, seq)
        continue
      }
      this.unanswered.delete(id)
      if (call !== seq) this.spans.push({ call, end: seq })
    }
    if (speaker === 'user') this.user_seq = seq
  }

  /**
   * undefined if no call up to a seq has a result after it; otherwise where that is so. One walk over the spans for each
   * direction, which are in order of their ends: a span that does not reach the place so far never does.
   */
  partedAt(seq: number): NearestPlaces | undefined {
    const spans = this.all()
    let before = seq
    for (let at = spans.length - 1; at >= 0; at--) {
      const { call, end } = spans[at]!
      if (call <= before && before < end) before = call - 1
    }
    if (before === seq) return undefined
    let after = seq
    for (const { call, end } of spans) if (call <= after && after < end) after = end
    return { before, after: Number.isFinite(after) ? after : undefined }
  }

  /** A message that has a call, or a result, whose other half is in none of the others. */
  partedFrom(seqs: ReadonlySet<number>): { seq: number; other: number } | undefined {
    for (const { call, end } of this.all()) {
      if (seqs.has(call) === seqs.has(end) || !Number.isFinite(end)) continue
      return seqs.has(call) ? { seq: call, other: end } : { seq: end, other: call }
    }
    return undefined
  }

  /** In order of their ends. */
  private all(): CallSpan[] {
    const all = [...this.spans]
    for (const call of this.unanswered.values())
      if (call > this.user_seq) all.push({ call, end: Number.POSITIVE_INFINITY })
    return all
  }
}
