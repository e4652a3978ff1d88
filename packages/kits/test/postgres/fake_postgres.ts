import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

/** What the fake does when a client has logged in and sends something: the first byte names the message. */
export type OnMessage = (socket: Socket, type: string, payload: Buffer) => void

export interface FakePostgres {
  target: { host: string; port: number; database: string; user: string }
  /** Connections accepted so far. */
  readonly accepted: number
  close(): Promise<void>
}

/**
 * A server that speaks as much of PostgreSQL's protocol as a client needs to log in, and then does what a test
 * wants. Without `onMessage` it accepts connections and never says a word. `afterLogin` arrives with the end of the
 * handshake.
 */
export async function startFakePostgres(
  onMessage?: OnMessage,
  afterLogin: Buffer = Buffer.alloc(0),
): Promise<FakePostgres> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer((socket) => {
    accepted += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    if (onMessage) serve(socket, onMessage, afterLogin)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    target: { host: '127.0.0.1', port, database: 'fake', user: 'fake' },
    get accepted() {
      return accepted
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function serve(socket: Socket, onMessage: OnMessage, afterLogin: Buffer): void {
  let received = Buffer.alloc(0)
  let loggedIn = false
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    if (!loggedIn && received.length >= 4 && received.length >= received.readInt32BE(0)) {
      received = received.subarray(received.readInt32BE(0))
      loggedIn = true
      socket.write(Buffer.concat([message('R', int32(0)), readyForQuery(), afterLogin]))
    }
    while (loggedIn && received.length >= 5 && received.length > received.readInt32BE(1)) {
      const end = received.readInt32BE(1) + 1
      onMessage(socket, received.toString('latin1', 0, 1), received.subarray(5, end))
      received = received.subarray(end)
    }
  })
}

/** The answer to a query: one row of text columns. */
export function rowAnswer(
  row: Record<string, string>,
  end: 'committed' | 'not committed' = 'committed',
): Buffer {
  const columns = Object.keys(row).map((name) =>
    // Table, column number, type (text), length, modifier, format (text).
    Buffer.concat([text(name), int32(0), int16(0), int32(25), int16(-1), int32(-1), int16(0)]),
  )
  const values = Object.values(row).map((value) =>
    Buffer.concat([int32(Buffer.byteLength(value)), Buffer.from(value)]),
  )
  return Buffer.concat([
    message('T', Buffer.concat([int16(columns.length), ...columns])),
    message('D', Buffer.concat([int16(values.length), ...values])),
    message('C', text('SELECT 1')),
    ...(end === 'committed' ? [readyForQuery()] : []),
  ])
}

/** What a server says at its end, to each client. */
export function stoppingAnswer(): Buffer {
  return spoken('E', 'SFATAL', 'C57P01', 'Mterminating connection due to administrator command')
}

/** What a standby, or a server for a role that may only read, says to a write. */
export function readOnlyAnswer(): Buffer {
  return refusal('25006', 'cannot execute INSERT in a read-only transaction')
}

/** What a server says to a write for which its disk has no room. */
export function fullDiskAnswer(): Buffer {
  return refusal('53100', 'could not extend file "base/5/16384": No space left on device')
}

function refusal(sqlstate: string, words: string): Buffer {
  return Buffer.concat([spoken('E', 'SERROR', `C${sqlstate}`, `M${words}`), readyForQuery()])
}

/** What a server says of a commit whose wait for a synchronous standby somebody cancelled, before it reports success. */
export function unreplicatedNotice(): Buffer {
  const words = 'canceling wait for synchronous replication due to user request'
  return spoken('N', 'SWARNING', 'C01000', `M${words}`, 'RSyncRepWaitForLSN')
}

/** An error or a notice. */
function spoken(type: 'E' | 'N', ...fields: string[]): Buffer {
  return message(type, Buffer.concat([...fields, ''].map(text)))
}

function readyForQuery(): Buffer {
  return message('Z', Buffer.from('I'))
}

function message(type: string, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(payload.length + 4), payload])
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`)
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}

function int16(value: number): Buffer {
  const buffer = Buffer.alloc(2)
  buffer.writeInt16BE(value)
  return buffer
}
