import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection on which a test writes bytes, and no HTTP client stands between. */
export interface RawConnection {
  socket: Socket
  /** All that came until the service closed the connection. */
  closed: Promise<string>
}

export async function rawConnection(serviceUrl: string): Promise<RawConnection> {
  const { hostname, port } = new URL(serviceUrl)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => {})
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('utf8')))
  })
  await once(socket, 'connect')
  return { socket, closed }
}

/** Sends bytes on a connection of their own; gives all that came back until the service closed it. */
export async function sendRaw(serviceUrl: string, bytes: string | Buffer): Promise<string> {
  const { socket, closed } = await rawConnection(serviceUrl)
  socket.write(bytes)
  return closed
}

export interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/** The only answer in what came on a connection. */
export function readRawAnswer(text: string): RawAnswer {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2)
  const [line = '', ...fields] = head.split('\r\n')
  const headers = fields.map((field) => {
    const colon = field.indexOf(':')
    return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
  })
  return { status: Number(line.split(' ')[1]), headers: Object.fromEntries(headers), body }
}
