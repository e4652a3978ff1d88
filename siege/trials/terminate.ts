import { setTimeout as sleep } from 'node:timers/promises'
import { strike } from '../attackers/strike.ts'
import { STOP_MS_MAX } from '../world/service.ts'
import type { Trial } from './trial.ts'
import { watched } from './watched.ts'

const ATTACKS = ['stalled-readers', 'hostile-names-no-key', 'unread-tails', 'slow-bodies', 'session-copies']
const BEFORE_MS = 2_000
const WATCHED_MS = 1_500

export const terminate: Trial = {
  name: 'terminate',
  does: 'sends SIGTERM in the middle of five attacks at once, and waits for the end within the time that it may take',
  async run(world, { seed, isShort, stopped }) {
    const { service, victim, target } = world
    await service.start()
    return watched(world, 'terminate', async () => {
      await victim.start(service)
      await sleep(WATCHED_MS)
      // What is asked of a service that ends is no longer its other tenant's success.
      await victim.stop()
      const orders = ATTACKS.map((name) => ({
        name,
        seed,
        seconds: (BEFORE_MS + STOP_MS_MAX) / 1_000,
        isShort,
        target: { ...target, url: service.url },
      }))
      const ended = new AbortController()
      const strikes = orders.map((order) =>
        strike(order, AbortSignal.any([stopped, ended.signal])).catch(() => ({})),
      )
      await sleep(BEFORE_MS)
      const release = () => {
        ended.abort()
        return Promise.all(strikes)
      }
      return { release }
    })
  },
}
