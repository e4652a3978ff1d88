import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

/** Of 2,500 connections that the service may have, all but those that others have or may still want. */
const CONNECTIONS = 2_300
const AT_ONCE = 100

export const idleConnections: Attack = {
  name: 'idle-connections',
  does: 'opens nearly as many connections as there may be, half of which ask once, and leaves them idle',
  answers: [200, 408, 'closed'],
  async strike(ground) {
    for (let opened = 0; opened < CONNECTIONS && !ground.isOver; opened += AT_ONCE) {
      const sockets = await Promise.all(Array.from({ length: AT_ONCE }, () => ground.open()))
      for (const socket of sockets.slice(AT_ONCE / 2)) socket?.write(head('GET', '/health'))
      await sleep(1)
    }
    await ground.lastOut()
  },
}
