import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { carryOut } from '../lab/other_process.ts'
import { percentile } from '../lab/statistics.ts'
import type { LoadMeasured, LoadOrder } from './load.ts'

/*
 * The process that makes the load: it takes an order from its parent and gives back what it measured. It speaks
 * HTTP/1.1 over plain sockets, one request in flight a connection, and does as little as it can between an answer and
 * the next request, since it shares the processors with what it measures.
 */

carryOut(run)

async function run(order: LoadOrder): Promise<LoadMeasured> {
  const { targets, connections, seconds, status, in_order } = order
  const requests = targets.map((target) => order.requests.map((request) => encode(request, target)))
  const latencies: number[] = []
  let sent = 0
  const next = (of: Encoded[]) => of[in_order ? sent++ : Math.floor(Math.random() * of.length)]
  const opened = await Promise.all(
    Array.from({ length: connections }, (_, index) => open(targets[index % targets.length]!.url)),
  )
  const began = performance.now()
  const until = began + seconds * 1000
  const cpu = process.cpuUsage()
  await Promise.all(
    opened.map((connection, index) =>
      drive(connection, () => next(requests[index % targets.length]!), status, until, latencies),
    ),
  )
  const used = process.cpuUsage(cpu)
  const took_s = (performance.now() - began) / 1000
  for (const { socket } of opened) socket.destroy()
  const sorted = Float64Array.from(latencies).sort()
  return {
    requests: sorted.length,
    seconds: took_s,
    p50_ms: percentile(sorted, 0.5),
    p99_ms: percentile(sorted, 0.99),
    max_ms: percentile(sorted, 1),
    cpu_us: used.user + used.system,
  }
}

/** A request as it is sent, and where digits stand in it that each has of its own. */
interface Encoded {
  bytes: Buffer
  own_at: number[]
  own_length: number
}

function encode(
  { method, path, body, own, headers = {} }: LoadOrder['requests'][number],
  { url, token }: LoadOrder['targets'][number],
): Encoded {
  const head = [`${method} ${path} HTTP/1.1`, `Host: ${new URL(url).host}`, `Authorization: Bearer ${token}`]
  for (const [name, value] of Object.entries(headers)) head.push(`${name}: ${value}`)
  if (body !== undefined) {
    head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  }
  const bytes = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`)
  const own_at: number[] = []
  for (let at = own ? bytes.indexOf(own) : -1; at >= 0; at = bytes.indexOf(own!, at + 1)) own_at.push(at)
  return { bytes, own_at, own_length: own?.length ?? 0 }
}

function asSent({ bytes, own_at, own_length }: Encoded): Buffer {
  if (own_at.length === 0) return bytes
  const sent = Buffer.from(bytes)
  const digits = randomBytes(own_length).toString('hex', 0, own_length / 2)
  for (const at of own_at) sent.write(digits, at, 'latin1')
  return sent
}

/** What is read from a connection at once: more than most answers are long. */
const READ_BYTES = 32 * 1024

/** A connection that reads into one buffer, without the stream's own machinery, which costs more than the reading. */
function open(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const connection: Connection = { socket: undefined!, onRead: () => {} }
    const onread = {
      buffer: Buffer.allocUnsafe(READ_BYTES),
      callback: (length: number, buffer: Uint8Array) => {
        connection.onRead((buffer as Buffer).toString('latin1', 0, length))
        return true
      },
    }
    connection.socket = connect({ host: hostname, port: Number(port), noDelay: true, onread }, () =>
      resolve(connection),
    )
    connection.socket.once('error', reject)
  })
}

interface Connection {
  socket: Socket
  /** Is given what arrived, a character a byte. */
  onRead: (text: string) => void
}

/** Sends request after request on one connection until the time is over. */
function drive(
  connection: Connection,
  next: () => Encoded | undefined,
  status: number,
  until: number,
  latencies: number[],
) {
  const { socket } = connection
  const wanted = `HTTP/1.1 ${status} `
  return new Promise<void>((resolve, reject) => {
    let head = ''
    let tail = ''
    let received = 0
    /** Of the whole answer; undefined until its headers are there. */
    let length: number | undefined
    let sent_at = 0
    const send = () => {
      const request = next()
      if (!request) return reject(new Error('there were too few requests'))
      sent_at = performance.now()
      socket.write(asSent(request))
    }
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the service closed a connection')))
    connection.onRead = (text) => {
      received += text.length
      tail = text.length < CHUNKS_END.length ? (tail + text).slice(-CHUNKS_END.length) : text
      if (length === undefined) {
        head += text
        length = lengthOf(head)
      }
      if (length === undefined || (length === CHUNKED ? !tail.endsWith(CHUNKS_END) : received < length))
        return
      const now = performance.now()
      latencies.push(now - sent_at)
      if (!head.startsWith(wanted)) {
        reject(new Error(`answered ${head.slice(9, 1_000)}`))
        return
      }
      head = ''
      received = 0
      length = undefined
      if (now < until) send()
      else resolve()
    }
    send()
  })
}

const CHUNKED = -1
const CHUNKS_END = '0\r\n\r\n'

/** How long an answer is that begins like this, or CHUNKED; undefined where its headers are not complete. */
function lengthOf(head: string): number | undefined {
  const end = head.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  if (head.startsWith('HTTP/1.1 304 ')) return end + 4
  const length = /\r\ncontent-length: (\d+)/i.exec(head)
  return length ? end + 4 + Number(length[1]) : CHUNKED
}
