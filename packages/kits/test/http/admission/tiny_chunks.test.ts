import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { BoundedChunks } from '../../../src/http/admission/connections.ts'

/** As many as the platform reads at a time: 64 KB. */
const CHUNKS = 10_000
const CHUNKS_MAX = 1_800

let server: Server
afterEach(() => server.close())

/** Starts a server; gives how many chunks its requests were handed. */
async function serve(listener: RequestListener): Promise<() => number> {
  let handed = 0
  class Counted extends BoundedChunks {
    override push(chunk: Buffer | null): boolean {
      handed += 1
      return super.push(chunk)
    }
  }
  server = createServer({ IncomingMessage: Counted as typeof IncomingMessage }, listener)
  // Only chunks end a connection here.
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return () => handed
}

function open(): Socket {
  const { port } = server.address() as AddressInfo
  return connect(port, '127.0.0.1').on('error', () => {})
}

const head = (more: string) => `POST / HTTP/1.1\r\nHost: a\r\n${more}Transfer-Encoding: chunked\r\n\r\n`
const bytes = (chunks: number) => '1\r\nx\r\n'.repeat(chunks)

/** Sends a body in single bytes; gives what came until the connection ended. */
async function send(chunks: number): Promise<string> {
  const socket = open()
  const answer: Buffer[] = []
  socket.on('data', (bytes) => answer.push(bytes))
  socket.write(`${head('Connection: close\r\n')}${bytes(chunks)}0\r\n\r\n`)
  await once(socket, 'close')
  return Buffer.concat(answer).toString()
}

const refuse: RequestListener = (_request, response) => void response.writeHead(401).end('no')
const wait: RequestListener = () => {}
const echo: RequestListener = (request, response) => void request.pipe(response)

describe('a body of thousands of single bytes', () => {
  it.each([
    ['that is read', echo],
    ['that waits to be read', wait],
    ['that is refused unread', refuse],
  ])('closes its connection, and nothing more is done for its chunks: one %s', async (_case, listener) => {
    const handed = await serve(listener)
    await send(CHUNKS)
    expect(handed()).toBeGreaterThan(0)
    expect(handed()).toBeLessThanOrEqual(CHUNKS_MAX + 1)
  })

  it('closes its connection also after it was refused', async () => {
    await serve(refuse)
    const socket = open()
    socket.write(`${head('')}${bytes(1)}`)
    await once(socket, 'data')
    socket.resume().write(bytes(CHUNKS))
    await once(socket, 'close')
  })

  it('leaves the parser, which serves other connections, as it was', async () => {
    await serve(echo)
    await send(CHUNKS)
    expect(await send(3)).toContain('1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n')
  })
})
