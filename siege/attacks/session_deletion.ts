import type { Attack } from '../attackers/attack.ts'
import { newSessions } from './new_sessions.ts'

const BATCH = 1_000
const LANES = 8

export const sessionDeletion: Attack = {
  name: 'session-deletion',
  does: 'deletes long sessions, each several times at once',
  answers: [200, 201, 404, 429, 503],
  seconds: 5,
  async strike(ground) {
    const { key } = ground.target
    const sessions = await newSessions(ground, LANES)
    const entries = Array.from({ length: BATCH }, (_, at) => ({ kind: 'event', type: 'note', data: { at } }))
    const body = JSON.stringify({ entries })
    await Promise.all(
      sessions.map(async (session) => {
        for (let from = 0; from < ground.scaled(8_000, 100_000) && !ground.isOver; from += BATCH)
          await ground.ask({ method: 'POST', path: `/api/v1/session/${session}/entries`, key, body })
      }),
    )
    const path = () => `/api/v1/session/${ground.random.pick(sessions)}`
    await ground.lanes(LANES * 2, () => ground.ask({ method: 'DELETE', path: path(), key }))
  },
}
