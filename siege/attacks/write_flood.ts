import type { Attack } from '../attackers/attack.ts'
import { newSessions } from './new_sessions.ts'

const SESSIONS = 20

export const writeFlood: Attack = {
  name: 'write-flood',
  does: 'appends to twenty sessions over hundreds of connections, one event or a thousand, and never waits',
  answers: [200, 201, 429, 503],
  async strike(ground) {
    const { key } = ground.target
    const sessions = await newSessions(ground, SESSIONS)
    const event = { type: 'note', data: { text: 'x'.repeat(200) } }
    const entries = Array.from({ length: 1_000 }, () => ({ kind: 'event', ...event }))
    const [one, many] = [event, { entries }].map((body) => JSON.stringify(body))
    await ground.lanes(ground.scaled(400, 500), () => {
      const path = `/api/v1/session/${ground.random.pick(sessions)}`
      const isBatch = ground.random.chance(0.02)
      return ground.ask({
        method: 'POST',
        path: `${path}/${isBatch ? 'entries' : 'events'}`,
        key,
        body: isBatch ? many : one,
      })
    })
  },
}
