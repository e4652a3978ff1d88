import type { Attack } from '../attackers/attack.ts'
import { type Ground, head } from '../attackers/ground.ts'

const LENGTH = 1_048_576
/** All of the body but its last byte, in JSON that could still become an event. */
const BODY = Buffer.from(`{"type":"note","data":{"text":"${'x'.repeat(LENGTH)}`).subarray(0, LENGTH - 1)

export const slowBodies: Attack = {
  name: 'slow-bodies',
  does: 'sends bodies of 1 MiB less one byte over hundreds of connections, and then waits',
  answers: [400, 408, 413, 429, 503, 'closed'],
  seconds: 4,
  strike: (ground) => {
    const { key, long_session } = ground.target
    return almostSend(ground, `/api/v1/session/${long_session}/events`, { Authorization: `Bearer ${key}` })
  },
}

export const slowBodiesWithoutKey: Attack = {
  name: 'slow-bodies-no-key',
  does: 'sends bodies of 1 MiB less one byte to the sign-in of the console, without a key, and then waits',
  answers: [400, 401, 403, 408, 413, 429, 503, 'closed'],
  seconds: 4,
  strike: (ground) => almostSend(ground, '/console/sign_in', {}),
}

async function almostSend(ground: Ground, path: string, headers: Record<string, string>): Promise<void> {
  const bytes = head('POST', path, {
    'Content-Type': 'application/json',
    'Content-Length': LENGTH,
    ...headers,
  })
  for (let at = 0; at < ground.scaled(500, 1_000) && !ground.isOver; at += 1) {
    const socket = await ground.open()
    socket?.write(bytes)
    socket?.write(BODY)
  }
  await ground.lastOut()
}
