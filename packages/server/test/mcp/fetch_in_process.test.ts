import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { AppServer } from '@annals/kits/http/app_server.js'
import Fastify from 'fastify'
import { afterAll, expect, it } from 'vitest'
import { fetchFrom } from '../../src/mcp/mcp_routes.js'

const PIECE = Buffer.alloc(65_536, 'x')
const app = Fastify()
let taken = 0
let ended: Promise<unknown> | undefined

app.get('/endless', (_request, reply) => {
  taken = 0
  const source = new Readable({
    read() {
      taken += PIECE.length
      this.push(PIECE)
    },
  })
  ended = once(source, 'close')
  return reply.send(source)
})
app.post('/echo', (request, reply) =>
  reply.code(503).header('retry-after', '7').send({ body: request.body, headers: request.headers }),
)
app.get('/silent', (_request, reply) => {
  reply.hijack()
  reply.raw.destroy()
})
afterAll(() => app.close())

const SERVED = { id: 'r-1', headers: { 'x-forwarded-for': '192.0.2.1' }, raw: { socket: {} } }
const here = (tryHold = (_bytes: number) => true) =>
  fetchFrom(app as unknown as AppServer, { ...SERVED, memory: { tryHold } } as never)

it('answers from this process as a request over the network is answered, on behalf of its caller', async () => {
  const response = await here()('http://here/echo', {
    method: 'POST',
    headers: { authorization: 'Bearer sk-1', 'content-type': 'application/json' },
    body: '{"a":1}',
  })
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('7')
  const { body, headers } = (await response.json()) as { body: unknown; headers: object }
  expect(body).toEqual({ a: 1 })
  expect(headers).toMatchObject({
    authorization: 'Bearer sk-1',
    'x-forwarded-for': '192.0.2.1',
    'x-request-id': 'r-1',
  })
})

it('refuses an answer that is too large without reading all of it, and ends it', async () => {
  const held: number[] = []
  const response = await here((bytes) => held.push(bytes) > 0)('http://here/endless')
  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({ error: 'payload_too_large' })
  await ended
  expect(taken).toBeLessThan(1_000_000)
  expect(held.length).toBeGreaterThan(0)
  expect(held.toSorted((a, b) => a - b)).toEqual(held)
})

it('refuses an answer for which there is no memory, and ends it', async () => {
  const response = await here(() => false)('http://here/endless')
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ error: 'overloaded' })
  await ended
})

it('fails as a connection does if the request is closed without an answer', async () => {
  await expect(here()('http://here/silent')).rejects.toThrow()
})
