import { connect, type Socket } from 'node:net'
import type { LoadOrder, LoadReport } from './load.ts'
import { percentile } from './statistics.ts'

/*
 * The process that makes the load: it takes an order from its parent and gives back what it measured. It speaks
 * HTTP/1.1 over plain sockets, one request in flight a connection, and does as little as it can between an answer and
 * the next request, since it shares the processors with what it measures.
 */

process.once('message', (order: LoadOrder) => {
  void run(order)
    .catch((error: Error): LoadReport => ({ failure: error.message }))
    .then((report) => process.send!(report))
})

async function run(order: LoadOrder): Promise<LoadReport> {
  const { targets, connections, seconds, status } = order
  const requests = targets.map((target) => order.requests.map((request) => encode(request, target)))
  const latencies: number[] = []
  const sockets = await Promise.all(
    Array.from({ length: connections }, (_, index) => open(targets[index % targets.length]!.url)),
  )
  const began = performance.now()
  const until = began + seconds * 1000
  const cpu = process.cpuUsage()
  await Promise.all(
    sockets.map((socket, index) =>
      drive(socket, requests[index % targets.length]!, status, until, latencies),
    ),
  )
  const used = process.cpuUsage(cpu)
  const took_s = (performance.now() - began) / 1000
  for (const socket of sockets) socket.destroy()
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

function encode(
  { method, path, body }: LoadOrder['requests'][number],
  { url, token }: LoadOrder['targets'][number],
) {
  const head = [`${method} ${path} HTTP/1.1`, `Host: ${new URL(url).host}`, `Authorization: Bearer ${token}`]
  if (body !== undefined) {
    head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  }
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`)
}

function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Sends request after request on one connection until the time is over. */
function drive(socket: Socket, requests: Buffer[], status: number, until: number, latencies: number[]) {
  return new Promise<void>((resolve, reject) => {
    let received: Buffer | undefined
    let sent_at = 0
    const send = () => {
      sent_at = performance.now()
      socket.write(requests[Math.floor(Math.random() * requests.length)]!)
    }
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the service closed a connection')))
    socket.on('data', (chunk) => {
      received = received ? Buffer.concat([received, chunk]) : chunk
      if (!isWhole(received)) return
      const now = performance.now()
      latencies.push(now - sent_at)
      if (Number(received.toString('latin1', 9, 12)) !== status) {
        reject(new Error(`answered ${received.toString('utf8').slice(9, 1_000)}`))
        return
      }
      received = undefined
      if (now < until) send()
      else resolve()
    })
    send()
  })
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** Whether an answer is there to its end: by its length, or by its last chunk. */
function isWhole(received: Buffer): boolean {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(received.toString('latin1', 0, end))
  return length ? received.length >= end + 4 + Number(length[1]) : received.subarray(-5).equals(LAST_CHUNK)
}
