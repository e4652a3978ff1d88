import { setMaxListeners } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type ConnectionTarget, onSingleConnection, singleConnection } from './single_connection.js'

/** How long a cancelled statement may take to end. Behind a pooler nothing cancels it, and it is abandoned. */
const END_MS_MAX = 500

/**
 * The result of work on a connection, or `signal.reason` once the signal aborts. Then the statement is cancelled in
 * the server, which would otherwise go on and keep its snapshot and locks although nobody waits for it. The
 * connection must be closed afterwards. `client` is undefined while there is no connection yet.
 */
export function orCancelled<T>(
  work: Promise<T>,
  signal: AbortSignal,
  target: ConnectionTarget,
  client?: pg.PoolClient,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const fail = (error: unknown) => reject(signal.aborted ? signal.reason : error)
    const end = async () => {
      const ended = Promise.allSettled([work])
      if (client)
        await Promise.race([
          cancel(client, target).then(() => ended),
          sleep(END_MS_MAX, undefined, { ref: false }),
        ])
      fail(signal.reason)
    }
    const onAbort = () => void end()
    // As many listen as statements are under way or wait for a connection: Node would warn of a leak from 11 on.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    work.then(resolve, fail).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

async function cancel(client: pg.PoolClient, target: ConnectionTarget): Promise<void> {
  // A pooler invents this number: it may belong to another client's process.
  if (target.pooled) return
  await cancelBackend(target, (client as unknown as { processID: number }).processID)
}

/**
 * Cancels the statement of a server process. If the process has ended, or cannot be reached, there is nothing to
 * cancel.
 */
export async function cancelBackend(target: ConnectionTarget, pid: number): Promise<void> {
  const client = singleConnection(target, 'annals cancel')
  const cancelled = onSingleConnection(client, () => client.query('SELECT pg_cancel_backend($1)', [pid]))
  await cancelled.catch(() => {})
}

/** Code of the message that asks a server, or a pooler, to cancel what another connection is doing. */
const CANCEL_REQUEST = (1_234 << 16) | 5_678
const REQUEST_MS_MAX = 5_000

/** The same for a statement of this process, without a connection to log in on, of which there may be none left. */
export function cancelRequest(client: pg.Client): void {
  const { host, port, processID, secretKey } = client as unknown as Record<string, string | number | null>
  if (typeof processID !== 'number' || typeof secretKey !== 'number') return
  const message = Buffer.alloc(16)
  message.writeInt32BE(message.length, 0)
  for (const [index, number] of [CANCEL_REQUEST, processID, secretKey].entries())
    message.writeInt32BE(number, 4 + 4 * index)
  const path = String(host)
  const socket = path.startsWith('/') ? connect(`${path}/.s.PGSQL.${port}`) : connect(Number(port), path)
  socket.setTimeout(REQUEST_MS_MAX, () => socket.destroy())
  socket.on('error', () => {})
  socket.unref().end(message)
}
