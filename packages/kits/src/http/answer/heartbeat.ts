import { inTurns } from '../../fairness/fair_queue.js'

/** A key is remembered for 4 s, and read again in half of that: what was revoked ends within 5 s. */
const CHECK_MS = 1_000
const BEAT_EVERY_CHECKS = 10

export interface Beating {
  /** Shows the client and any proxy that the stream is alive, every 10 s. */
  beat(): void
  /** Looks whether the stream may go on; every second. */
  check(): Promise<void>
}

/** One clock for all open streams: a timer each would be a thousand timers for a thousand idle tails. */
export class Heartbeat {
  private readonly streams = new Set<Beating>()
  private readonly timer: NodeJS.Timeout
  private checks = 0
  private isTicking = false

  constructor() {
    this.timer = setInterval(() => void this.tick(), CHECK_MS)
    this.timer.unref()
  }

  /** Adds a stream; the function that it returns removes it. */
  add(stream: Beating): () => void {
    this.streams.add(stream)
    return () => this.streams.delete(stream)
  }

  close(): void {
    clearInterval(this.timer)
  }

  private async tick(): Promise<void> {
    if (this.isTicking) return
    this.isTicking = true
    this.checks += 1
    const isBeat = this.checks % BEAT_EVERY_CHECKS === 0
    await inTurns(this.streams, (stream) => {
      if (isBeat) stream.beat()
      // A token that cannot be checked because the database is away is checked again at the next tick.
      stream.check().catch(() => {})
    })
    this.isTicking = false
  }
}
