import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

const LANES = 32
const PAUSE_MS = 10

export const connectionFlood: Attack = {
  name: 'connection-flood',
  does: 'opens connections by the thousand and resets them, before or in the middle of a request',
  answers: ['closed'],
  strike: (ground) =>
    ground.lanes(LANES, async () => {
      const socket = await ground.open({ isStalled: true })
      const written = ground.random.pick(['', 'GET /hea', head('GET', '/health'), 'POST / HTTP/1.1\r\n'])
      if (written !== '') socket?.write(written)
      await sleep(ground.random.integer(0, PAUSE_MS))
      socket?.resetAndDestroy()
    }),
}
