import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

const LANES = 24
const FIRST_BYTE_MS_MAX = 2_000

export const resetsMidAnswer: Attack = {
  name: 'resets-mid-answer',
  does: 'asks for pages of 20 MB and resets the connection at the first bytes of the answer',
  answers: [200, 429, 503, 'closed'],
  strike: (ground) =>
    ground.lanes(LANES, async () => {
      const { big_session, read_key } = ground.target
      const socket = await ground.open()
      if (!socket) return sleep(50)
      const path = `/api/v1/session/${big_session}/messages?limit=200`
      socket.write(head('GET', path, { Authorization: `Bearer ${read_key}` }))
      await once(socket, 'data', { signal: AbortSignal.timeout(FIRST_BYTE_MS_MAX) }).catch(() => {})
      socket.resetAndDestroy()
    }),
}
