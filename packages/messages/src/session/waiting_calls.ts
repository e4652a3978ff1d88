import type { ToolCall } from './entry.js'
import type { Source } from './records.js'

/** A call, and which kinds of entry recorded it and its result. */
export interface TrackedCall {
  call: ToolCall
  /** Its place among the calls of the session. */
  order: number
  recorded: Record<Source, boolean>
  /** Its id in each kind of entry. */
  ids: Partial<Record<Source, string>>
  answered: Record<Source, boolean>
  /** A digest of its arguments in canonical form; 0 if it has none. */
  given: number
}

/** Most characters of calls and results to remember, in each of two generations. */
const CHARACTERS_MAX = 8_000_000
/** Least size of a call. */
const CALL_CHARACTERS = 500

class Generation {
  readonly queues = new Map<string, { calls: TrackedCall[]; next: number }>()
  characters = 0
}

/**
 * Calls by keys, oldest first. Of a long session the latest are remembered, at least some 10,000 unless they are
 * large, so a session of any length can be read: when the young generation is full, the old one is dropped.
 */
export class WaitingCalls {
  private old = new Generation()
  private young = new Generation()

  add(key: string, call: TrackedCall): void {
    const queue = this.young.queues.get(key)
    if (!queue) {
      this.young.queues.set(key, { calls: [call], next: 0 })
      return
    }
    const { calls, next } = queue
    // An event may record an earlier call after a later one. Who resumes from stored calls has no other order than theirs.
    let [place, end] = [next, calls.length]
    if (end === next || calls[end - 1]!.order <= call.order) place = end
    while (place < end) {
      const middle = (place + end) >> 1
      if (calls[middle]!.order > call.order) end = middle
      else place = middle + 1
    }
    calls.splice(place, 0, call)
  }

  /** Records the size of a call or a result that is now remembered. */
  grow(characters: number): void {
    this.young.characters += CALL_CHARACTERS + characters
    if (this.young.characters < CHARACTERS_MAX) return
    this.old = this.young
    this.young = new Generation()
  }

  /**
   * The oldest wanted call under the key. An unwanted one is dropped, so that all searches together take linear time:
   * a call that is no longer wanted under a key must never be wanted again.
   */
  first(key: string, isWanted: (call: TrackedCall) => boolean): TrackedCall | undefined {
    return firstOf(this.old, key, isWanted) ?? firstOf(this.young, key, isWanted)
  }
}

function firstOf(
  { queues }: Generation,
  key: string,
  isWanted: (call: TrackedCall) => boolean,
): TrackedCall | undefined {
  const queue = queues.get(key)
  if (queue === undefined) return undefined
  for (; queue.next < queue.calls.length; queue.next++) {
    const call = queue.calls[queue.next]!
    if (isWanted(call)) return call
  }
  queues.delete(key)
  return undefined
}
