import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attack } from '../attackers/attack.ts'
import { head } from '../attackers/ground.ts'

const LANES = 8
const CHUNKS = 100_000

export const tinyChunks: Attack = {
  name: 'tiny-chunks',
  does: 'sends bodies in chunks of a single byte, with and without a key',
  answers: [200, 400, 401, 408, 413, 429, 503, 'closed'],
  async strike(ground) {
    const { key, long_session } = ground.target
    const chunks = `1\r\n \r\n`.repeat(CHUNKS)
    const events = `/api/v1/session/${long_session}/events`
    const targets: Array<[path: string, headers: Record<string, string>]> = [
      ['/console/sign_in', {}],
      [events, { Authorization: `Bearer ${key}` }],
      [events, { Authorization: 'Bearer sk-annals-unknown' }],
      [events, {}],
    ]
    await ground.lanes(LANES, async (lane) => {
      const socket = await ground.open()
      if (!socket) return sleep(50)
      const [path, headers] = targets[lane % targets.length]!
      const chunked = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }
      socket.write(head('POST', path, { ...chunked, ...headers }))
      socket.write(`${chunks}0\r\n\r\n`)
      await Promise.race([once(socket, 'data'), once(socket, 'close'), sleep(2_000)]).catch(() => {})
      socket.resetAndDestroy()
    })
  },
}
