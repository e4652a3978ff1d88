import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

export const FORMATS = ['openai', 'anthropic', 'gemini', 'acontext', 'responses']

export const stalledReaders: Attack = {
  name: 'stalled-readers',
  does: 'asks for pages of 20 MB in five formats over hundreds of connections, and reads none of them',
  answers: ['closed'],
  seconds: 5,
  async strike(ground) {
    const { big_session, read_key } = ground.target
    for (let at = 0; at < ground.scaled(300, 1_000) && !ground.isOver; at += 1) {
      const socket = await ground.open({ isStalled: true })
      const format = FORMATS[at % FORMATS.length]
      const path = `/api/v1/session/${big_session}/messages?limit=200&format=${format}`
      socket?.write(head('GET', path, { Authorization: `Bearer ${read_key}` }))
    }
    await ground.lastOut()
  },
}
