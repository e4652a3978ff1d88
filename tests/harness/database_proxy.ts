import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import pg from 'pg'
import { withDatabaseHost } from './database_url.ts'

/**
 * Stands between a node and its database, so that a test can take the database away from that node alone.
 * States: `up` passes everything on; `refusing` closes every connection and takes none; `silent` takes connections
 * and everything that comes, and passes nothing on.
 */
export interface DatabaseProxy {
  url: string
  /** Bytes that went to the database and came from it. */
  readonly passed: { there: number; back: number }
  /** The names of the prepared statements that were executed, and the texts of others; a test may empty it. */
  readonly executed: string[]
  refuse(): Promise<void>
  /** Until it comes back: what was passed on by then is answered to nobody. */
  fallSilent(): void
  comeBack(): Promise<void>
  close(): Promise<void>
}

export async function proxyDatabase(databaseUrl: string): Promise<DatabaseProxy> {
  const upstream = addressOf(databaseUrl)
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    return socket
  }
  let silent = false
  const passed = { there: 0, back: 0 }
  const executed: string[] = []
  const server = createServer((near) => {
    const far = keep(connect(upstream))
    const notice = statementsIn(executed)
    keep(near).on('data', (data) => {
      passed.there += data.length
      notice(data)
      if (!silent) far.write(data)
    })
    far.on('data', (data) => {
      passed.back += data.length
      if (!silent) near.write(data)
    })
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const refuse = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    url: withDatabaseHost(databaseUrl, '127.0.0.1', port),
    passed,
    executed,
    refuse,
    fallSilent: () => {
      silent = true
    },
    comeBack: async () => {
      silent = false
      if (!server.listening) await listen(port)
    },
    close: refuse,
  }
}

/** A request for encryption, after which the connection begins anew. */
const SSL_REQUEST = 80_877_103
/** How it begins if it is encrypted, so that nobody can note its statements. */
const TLS_HANDSHAKE = 0x16
/** As much of a message as names its statement. */
const HEAD = 200

/** Notes the statements in what a driver sends on one connection, whatever pieces it comes in. */
function statementsIn(executed: string[]): (data: Buffer) => void {
  let isBegun = false
  let isEncrypted = false
  let rest = Buffer.alloc(0)
  let skipped = 0
  return (data) => {
    isEncrypted ||= !isBegun && data[0] === TLS_HANDSHAKE
    if (isEncrypted) return
    rest = Buffer.concat([rest, data.subarray(skipped)])
    skipped = Math.max(0, skipped - data.length)
    // Each message has a type, but for the first one of a connection, and its length.
    for (let at = isBegun ? 1 : 0; rest.length >= at + 8; at = isBegun ? 1 : 0) {
      const length = at + rest.readInt32BE(at)
      if (rest.length < Math.min(length, HEAD)) return
      const [what = '', name = ''] = rest.toString('latin1', at + 4, Math.min(length, HEAD)).split('\0')
      const type = at && String.fromCharCode(rest[0]!)
      if (type === 'B') executed.push(name)
      else if (type === 'Q') executed.push(what)
      isBegun ||= rest.readInt32BE(4) !== SSL_REQUEST
      skipped = Math.max(0, length - rest.length)
      rest = rest.subarray(length)
    }
  }
}

/** Where the driver would connect to: a Unix socket or a TCP address. */
function addressOf(databaseUrl: string): NetConnectOpts {
  const { host, port } = new pg.Client({ connectionString: databaseUrl })
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }
}
