import { request as requestPlainly } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { AnswerTooLong, boundedAgents, boundedRequest } from '../../src/outgoing/bounded_request.ts'

const BODY_BYTES_MAX = 16 * 1024
/** Far more than anybody reads, however fast it comes. */
const SENT = 40 * 1024 * 1024
/** What the system's buffers hold between the two, besides what is read. */
const BUFFERED_MAX = 16 * 1024 * 1024

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`

/** What a server sends: at first, and then again and again. */
const FLOODS: Record<string, [first: string, more: string]> = {
  'informational answers': ['', 'HTTP/1.1 100 Continue\r\n\r\n'],
  'informational answers with headers': [
    '',
    `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(2_000)}\r\n\r\n`,
  ],
  headers: [OK, 'A: b\r\n'],
  'a body': [`${OK}Content-Length: 1000000000\r\n\r\n`, 'x'.repeat(1_000)],
  'a body until the connection ends': [`${OK}\r\n`, 'x'.repeat(1_000)],
  'a body in tiny chunks': [CHUNKED, '1\r\nx\r\n'],
  'extensions of chunks': [CHUNKED, `1;${'x'.repeat(1_000)}\r\nx\r\n`],
  trailers: [`${CHUNKED}1\r\nx\r\n0\r\n`, 'A: b\r\n'],
  'no HTTP': ['', '\0'.repeat(1_000)],
}

const ends: Array<() => unknown> = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A server that sends this for as long as the connection takes it. Gives how many bytes it could send. */
async function flood([first, more]: [string, string]) {
  const pieces = Buffer.from(more.repeat(Math.ceil(65_536 / more.length)))
  let sent = 0
  let open = 0
  const server = createServer((connection: Socket) => {
    open += 1
    ends.push(() => connection.destroy())
    const send = () => {
      while (connection.writable && sent < SENT) {
        sent += pieces.length
        if (!connection.write(pieces)) return
      }
    }
    connection.on('error', () => {}).on('drain', send)
    connection.once('close', () => {
      open -= 1
    })
    connection.once('data', () => {
      connection.write(first)
      send()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  return { url, sent: () => sent, open: () => open }
}

type Sent = ReturnType<typeof requestPlainly>

/** Reads an answer to its end; gives what it failed with, and how many bytes of a body came. */
function read(request: Sent): Promise<{ error: Error | undefined; bytes: number }> {
  return new Promise((resolve) => {
    let bytes = 0
    let error: Error | undefined
    const failed = (cause: Error) => {
      error ??= cause
    }
    request.on('error', failed)
    request.on('response', (response) => {
      response.on('error', failed)
      response.on('data', (piece: Buffer) => {
        bytes += piece.length
      })
    })
    request.on('close', () => setImmediate(() => resolve({ error, bytes })))
    request.end()
  })
}

describe('an answer without end is cut, and its connection with it, when it consists of', () => {
  it.each(Object.entries(FLOODS))('%s', async (_name, sends) => {
    const server = await flood(sends)
    const { signal } = new AbortController()
    const { error, bytes } = await read(boundedRequest(server.url, { agent: false, signal }, BODY_BYTES_MAX))
    expect(error).toBeInstanceOf(Error)
    expect(bytes).toBeLessThan(2 * BODY_BYTES_MAX)
    await expect.poll(server.open).toBe(0)
    expect(server.sent()).toBeLessThan(BUFFERED_MAX)
  })

  it.each(Object.entries(FLOODS))('%s, for a client with agents of its own', async (_name, sends) => {
    const server = await flood(sends)
    const { httpAgent: agent } = boundedAgents({ keepAlive: true }, () => BODY_BYTES_MAX)
    ends.push(() => agent.destroy())
    const { error, bytes } = await read(requestPlainly(server.url, { agent }))
    expect(error).toBeInstanceOf(Error)
    expect(bytes).toBeLessThan(2 * BODY_BYTES_MAX)
    await expect.poll(server.open).toBe(0)
  })
})

it('informational answers are told from an answer that is away', async () => {
  const server = await flood(FLOODS['informational answers']!)
  const { signal } = new AbortController()
  const { error } = await read(boundedRequest(server.url, { agent: false, signal }, BODY_BYTES_MAX))
  expect(error).toBeInstanceOf(AnswerTooLong)
})

it('answers within their bounds come whole, one after the other over one connection', async () => {
  const body = 'x'.repeat(BODY_BYTES_MAX)
  const answers = [
    `HTTP/1.1 103 Early Hints\r\n\r\n${OK}Content-Length: ${body.length}\r\n\r\n${body}`,
    `${CHUNKED}${body.length.toString(16)}\r\n${body}\r\n0\r\nA: b\r\n\r\n`,
  ]
  let connections = 0
  const server = createServer((connection) => {
    connections += 1
    ends.push(() => connection.destroy())
    let asked = 0
    connection.on('error', () => {})
    connection.on('data', () => connection.write(answers[asked++ % 2]!))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const { httpAgent: agent } = boundedAgents({ keepAlive: true, maxSockets: 1 }, () => BODY_BYTES_MAX)
  ends.push(() => agent.destroy())
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  for (let times = 0; times < 20; times++)
    expect(await read(requestPlainly(url, { agent }))).toEqual({ error: undefined, bytes: BODY_BYTES_MAX })
  expect(connections).toBe(1)
})
