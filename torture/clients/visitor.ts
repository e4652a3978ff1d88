import { setTimeout as sleep } from 'node:timers/promises'
import { Writer } from './writer.ts'

/** About as long as a consumer of changes takes to come by, so that many appends meet it at its work. */
const AWAY_MS: [number, number] = [1_000, 2_200]

/**
 * Creates a session of the tenant that has a consumer of changes, appends to it once, in a later second, and never comes
 * back: a change that the consumer misses stays missed.
 */
export class Visitor extends Writer {
  override async run(): Promise<void> {
    while (this.around.isRunning()) {
      const session = await this.createSession(this.around.consumed)
      if (!session) continue
      await sleep(this.random.integer(...AWAY_MS))
      await this.append(session)
    }
  }
}
