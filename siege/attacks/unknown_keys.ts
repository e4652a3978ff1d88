import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack } from '../attackers/attack.ts'

const TICK_MS = 10

export const unknownKeys: Attack = {
  name: 'unknown-keys',
  does: 'guesses keys, a different one each time, hundreds a second',
  answers: [401, 429, 503],
  async strike(ground) {
    const per_tick = ground.scaled(500, 2_000) * (TICK_MS / 1_000)
    const guesses = new Set<Promise<unknown>>()
    while (!ground.isOver) {
      for (let at = 0; at < per_tick && guesses.size < 500; at += 1) {
        const key = `sk-annals-${Array.from({ length: 43 }, () => ground.random.integer(0, 35).toString(36)).join('')}`
        const guess = ground.ask({ path: '/api/v1/session', key }).finally(() => guesses.delete(guess))
        guesses.add(guess)
      }
      await sleep(TICK_MS)
    }
    await Promise.all(guesses)
  },
}
