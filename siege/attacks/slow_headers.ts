import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack } from '../attackers/attack.ts'

const PAUSE_MS = 250

export const slowHeaders: Attack = {
  name: 'slow-headers',
  does: 'sends a header every now and then over hundreds of connections, and never the last one',
  answers: [408, 431, 'closed'],
  async strike(ground) {
    await ground.lanes(ground.scaled(500, 1_500), async (lane) => {
      const socket = await ground.open()
      socket?.write('GET /health HTTP/1.1\r\nHost: annals\r\n')
      for (let at = 0; socket && !socket.destroyed && !ground.isOver; at += 1) {
        socket.write(`X-${lane}-${at}: a\r\n`)
        await sleep(PAUSE_MS)
      }
      if (!socket) await sleep(PAUSE_MS)
    })
  },
}
