import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Attack } from '../attackers/attack.ts'
import { dataOf } from '../http.ts'
import { newSessions } from './new_sessions.ts'

const INFORMATION = 'HTTP/1.1 100 Continue\r\n\r\n'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
/** What receivers send first, and then for as long as it is taken. */
const FLOODS = [
  [INFORMATION, INFORMATION],
  [INFORMATION, 'HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n'],
  [CHUNKED, '1\r\nx\r\n'],
  [`${CHUNKED}0\r\n`, 'A: b\r\n'],
] as const
const SESSIONS = 100
const WRITERS = 2

export const floodingReceivers: Attack = {
  name: 'flooding-receivers',
  does: 'has entries delivered to receivers that send informational answers, or chunks, as fast as they are read',
  answers: [200, 201, 429, 503],
  seconds: 5,
  async strike(ground) {
    const { key } = ground.target
    const sockets = new Set<Socket>()
    const servers = await Promise.all(FLOODS.map((flood) => receiver(flood, sockets)))
    const hooks: string[] = []
    try {
      for (const server of servers) {
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
        const made = await ground.ask({
          method: 'POST',
          path: '/api/v1/webhooks',
          key,
          body: { url, events: ['event'] },
        })
        const id = dataOf<{ id: string }>(made)?.id
        if (id) hooks.push(id)
      }
      const sessions = await newSessions(ground, SESSIONS)
      await ground.lanes(WRITERS, () =>
        ground.ask({
          method: 'POST',
          path: `/api/v1/session/${ground.random.pick(sessions)}/events`,
          key,
          body: { type: 'note', data: {} },
        }),
      )
    } finally {
      for (const id of hooks) await ground.ask({ method: 'DELETE', path: `/api/v1/webhooks/${id}`, key })
      for (const socket of sockets) socket.destroy()
      for (const server of servers) server.close()
    }
  },
}

async function receiver([first, more]: (typeof FLOODS)[number], sockets: Set<Socket>): Promise<Server> {
  const bytes = Buffer.from(more.repeat(Math.ceil(65_536 / more.length)))
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    const flood = () => {
      while (socket.writable && socket.write(bytes));
    }
    socket.on('drain', flood).once('data', () => {
      socket.write(first)
      flood()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
