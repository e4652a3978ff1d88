import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

const CONNECTIONS = 40
const REQUESTS = 5_000

export const pipelining: Attack = {
  name: 'pipelining',
  does: 'sends thousands of requests ahead on each connection, with and without a key, and reads half of the answers',
  answers: [200, 401, 429, 503, 'closed'],
  async strike(ground) {
    const { read_key } = ground.target
    for (let at = 0; at < CONNECTIONS && !ground.isOver; at += 1) {
      const socket = await ground.open({ isStalled: at % 2 === 0 })
      const headers = at % 4 < 2 ? { Authorization: `Bearer ${read_key}` } : {}
      socket?.write(head('GET', '/api/v1/session?limit=200', headers).repeat(REQUESTS))
    }
    await ground.lastOut()
  },
}
