import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { postJson } from '../../src/outgoing/post_json.ts'

/** What receivers send that do not speak HTTP as they should, and whether the entry counts as delivered. */
const ANSWERS: [name: string, send: (connection: Socket) => unknown, isDelivered: boolean][] = [
  ['an answer', (to) => to.end('HTTP/1.1 204 No Content\r\n\r\n'), true],
  ['another protocol', (to) => to.write(`${head('101 Switching Protocols', 'Upgrade: x')}\r\n`), false],
  ['nothing', (to) => to.end(), false],
  ['a reset', (to) => to.resetAndDestroy(), false],
  ['no HTTP', (to) => to.write('\0\0 nonsense\r\n\r\n'), false],
  ['headers without end', (to) => endlessly(to, head('200 OK'), 'a: b\r\n'), false],
  ['half of what it announces', (to) => to.end(`${head('200 OK', 'Content-Length: 10')}\r\nhalf`), true],
  ['early hints without end', (to) => endlessly(to, '', `${head('103 Early Hints')}\r\n`), false],
  ['a body without end', (to) => endlessly(to, `${head('200 OK')}\r\n`, 'x'), true],
]
/** Those that would be waited for: here the attempt is ended from outside. */
const SILENT: typeof ANSWERS = [
  ['200 with another protocol', (to) => to.write(`${head('200 OK', 'Upgrade: x')}\r\n`), true],
  ['nothing behind its status', (to) => to.write(`${head('200 OK', 'Content-Length: 10')}\r\n`), true],
  ['no answer', () => {}, false],
]

function head(status: string, header = 'A: b'): string {
  return `HTTP/1.1 ${status}\r\nConnection: Upgrade\r\n${header}\r\n`
}

function endlessly(to: Socket, first: string, more: string): void {
  to.write(first)
  const timer = setInterval(() => to.write(more.repeat(1_000)), 1)
  to.once('close', () => clearInterval(timer))
}

const ends: Array<() => unknown> = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** Posts to a receiver that sends this; gives whether it was delivered, and how many connections were open then. */
async function deliver(send: (connection: Socket) => unknown, signal: AbortSignal) {
  let open = 0
  const server = createServer((connection) => {
    open += 1
    ends.push(() => connection.destroy())
    connection.on('error', () => {}).once('data', () => send(connection))
    connection.once('close', () => {
      open -= 1
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const delivered = postJson({ url, headers: {}, body: '{}', to_private: true, signal }).then(
    () => true,
    () => false,
  )
  return { delivered, open: () => open }
}

describe('an attempt to deliver ends, and its connection with it, when the receiver sends', () => {
  it.each(ANSWERS)('%s', async (_name, send, isDelivered) => {
    const { delivered, open } = await deliver(send, new AbortController().signal)
    expect(await delivered).toBe(isDelivered)
    await expect.poll(open).toBe(0)
  })

  it.each(SILENT)('%s, once its time is over and not before', async (_name, send, isDelivered) => {
    const abort = new AbortController()
    const { delivered, open } = await deliver(send, abort.signal)
    expect(
      await Promise.race([delivered, new Promise((resolve) => setTimeout(resolve, 300, 'goes on'))]),
    ).toBe('goes on')
    abort.abort()
    expect(await delivered).toBe(isDelivered)
    await expect.poll(open).toBe(0)
  })
})
