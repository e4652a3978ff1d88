import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'

/** A way to a database that can lose an answer: the statement is carried out, and nobody hears of it. */
export interface Relay {
  url: string
  /** The next thing that the database says on any connection is dropped, and that connection with it. */
  loseNextAnswer(): void
  /** How many answers have been lost. */
  readonly lost: number
  close(): Promise<void>
}

/** Starts a relay in front of the database at a URL. */
export async function startRelay(databaseUrl: string): Promise<Relay> {
  const { host, port, user, password, database } = new pg.Client({ connectionString: databaseUrl })
  const sockets = new Set<Socket>()
  let armed = false
  let lost = 0
  const server = createServer((client) => {
    const upstream = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream)
    upstream.on('data', (chunk) => {
      if (!armed) return void client.write(chunk)
      armed = false
      lost += 1
      client.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const credentials = [user, password].filter(Boolean).map((part) => encodeURIComponent(part as string))
  return {
    url: `postgresql://${credentials.join(':')}@127.0.0.1:${(server.address() as AddressInfo).port}/${database}`,
    loseNextAnswer: () => {
      armed = true
    },
    get lost() {
      return lost
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
