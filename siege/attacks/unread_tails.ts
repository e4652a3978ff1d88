import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'
import { newSessions } from './new_sessions.ts'

const TEXT = 'x'.repeat(200_000)
const WRITERS = 4

export const unreadTails: Attack = {
  name: 'unread-tails',
  does: 'opens hundreds of live tails, reads none of them, and appends large events to what they follow',
  answers: [200, 201, 429, 503, 'closed'],
  seconds: 5,
  async strike(ground) {
    const { key, read_key, big_session } = ground.target
    const [session] = await newSessions(ground, 1)
    for (let at = 0; at < ground.scaled(300, 1_000) && !ground.isOver; at += 1) {
      const socket = await ground.open({ isStalled: true })
      const followed = at % 4 === 0 ? big_session : session
      const headers = { Authorization: `Bearer ${read_key}`, Accept: 'text/event-stream' }
      socket?.write(head('GET', `/api/v1/session/${followed}/timeline`, headers))
    }
    const body = JSON.stringify({ type: 'note', data: { text: TEXT } })
    await ground.lanes(WRITERS, () =>
      ground.ask({ method: 'POST', path: `/api/v1/session/${session}/events`, key, body }),
    )
  },
}
