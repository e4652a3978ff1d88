import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sendInPieces } from '../../../src/http/answer/answer.ts'
import type { AppServer } from '../../../src/http/app_server.ts'

/** What is sent under a length of ten bytes, by path. */
const SENT: Record<string, string[]> = {
  exact: ['01234', '56789'],
  surplus: ['01234', '56789', 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted'],
  surplus_in_one: ['0123456789HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted'],
  short: ['01234'],
}

const app = Fastify() as unknown as AppServer
sendInPieces(app)
app.get('/next', async () => 'the next answer')
app.get('/:name', async (request, reply) => {
  const { name } = request.params as { name: string }
  return reply
    .headers({ 'content-length': 10, 'content-type': 'application/octet-stream' })
    .send(Readable.from(SENT[name]!.map((text) => Buffer.from(text))))
})
beforeAll(async () => {
  await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(() => app.close())

/** Asks for an answer and then, on the same connection, for the next one; gives all that came. */
async function received(name: string): Promise<string> {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  const pieces: Buffer[] = []
  socket.on('data', (piece) => pieces.push(piece))
  socket.write(
    `GET /${name} HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  await once(socket, 'close')
  return Buffer.concat(pieces).toString()
}

it('an answer with the length that was announced is followed by the next one', async () => {
  expect(await received('exact')).toMatch(/0123456789HTTP\/1\.1 200 OK\r\n[\s\S]*the next answer$/)
})

it.each(['surplus', 'short'])('an answer whose bytes are %s ends its connection', async (name) => {
  const text = await received(name)
  expect(text).not.toContain('planted')
  expect(text).not.toContain('the next answer')
  expect(text.split('\r\n\r\n')[1]!.length).toBeLessThanOrEqual(10)
})

it('an answer that would begin with too many bytes is an error instead', async () => {
  const text = await received('surplus_in_one')
  expect(text).toMatch(/^HTTP\/1\.1 500 [\s\S]*the next answer$/)
  expect(text).not.toContain('planted')
})
