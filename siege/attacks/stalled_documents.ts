import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

const PATHS = ['/docs', '/docs/reference.js', '/openapi.json', '/console/demo.json', '/console', '/metrics']

export const stalledDocuments: Attack = {
  name: 'stalled-documents',
  does: 'asks for the documents that need no key over hundreds of connections, several times each, and reads nothing',
  answers: ['closed'],
  async strike(ground) {
    for (let at = 0; at < ground.scaled(500, 2_000) && !ground.isOver; at += 1) {
      const socket = await ground.open({ isStalled: true })
      for (let times = 0; times < 8; times += 1) socket?.write(head('GET', ground.random.pick(PATHS)))
    }
    await ground.lastOut()
  },
}
