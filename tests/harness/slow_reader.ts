import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A client that sends requests and takes as much of the answers as a test has it take. */
export interface SlowReader {
  socket: Socket
  /** Takes about so many bytes more; gives how many came since the connection was made, at the latest when it ends. */
  take(bytes: number): Promise<number>
  /** Takes all that comes until the service closes the connection; gives how many bytes came in all. */
  takeAll(): Promise<number>
  /** The beginning of what came. */
  head(): string
}

const HEAD_BYTES = 4_096

/** Connects and sends `requests`; takes nothing by itself. */
export async function slowReader(serviceUrl: string, requests: string): Promise<SlowReader> {
  const { hostname, port } = new URL(serviceUrl)
  const socket = connect(Number(port), hostname)
  let received = 0
  let head = ''
  let taken = () => {}
  socket.on('error', () => {})
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (head.length < HEAD_BYTES) head += chunk.toString('latin1').slice(0, HEAD_BYTES)
    taken()
  })
  socket.pause()
  await once(socket, 'connect')
  socket.write(requests)
  return {
    socket,
    take: async (bytes) => {
      const until = received + bytes
      const enough = new Promise<void>((resolve) => {
        taken = () => received >= until && resolve()
      })
      socket.resume()
      await Promise.race([enough, ended])
      socket.pause()
      return received
    },
    takeAll: async () => {
      taken = () => {}
      socket.resume()
      await ended
      return received
    },
    head: () => head,
  }
}

/** The text of a GET with a token. */
export function getRequest(path: string, token: string, ...headers: string[]): string {
  return `${[`GET ${path} HTTP/1.1`, 'Host: annals', `Authorization: Bearer ${token}`, ...headers].join('\r\n')}\r\n\r\n`
}
