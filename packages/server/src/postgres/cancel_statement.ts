import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { ConnectionTarget } from './database.js'

/** How long a cancelled statement may take to end. Behind a pooler nothing cancels it, and it is left behind. */
const END_MS_MAX = 500

/**
 * What work on a connection comes to, or `signal.reason` once that has gone off: then the statement is cancelled in
 * the server, which would otherwise go on with it, and hold its snapshot and its locks, though nobody waits for it.
 * The connection must be closed after that. `client` is undefined while there is no connection yet.
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
      const ended = work.then(
        () => {},
        () => {},
      )
      if (client)
        await Promise.race([
          cancel(client, target).then(() => ended),
          sleep(END_MS_MAX, undefined, { ref: false }),
        ])
      fail(signal.reason)
    }
    const onAbort = () => void end()
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    work.then(resolve, fail).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

async function cancel(client: pg.PoolClient, target: ConnectionTarget): Promise<void> {
  // A pooler makes the number up: it may be that of somebody else's process.
  if ('pooled' in target && target.pooled) return
  await cancelBackend(target, (client as unknown as { processID: number }).processID)
}

/** Cancels what a process of the server is doing. One that has ended, or cannot be reached, has nothing to cancel. */
export async function cancelBackend(target: ConnectionTarget, pid: number): Promise<void> {
  const client = new pg.Client({
    ...target,
    application_name: 'annals cancel',
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('SELECT pg_cancel_backend($1)', [pid])
  } catch {
    // Said above.
  } finally {
    await client.end().catch(() => {})
  }
}
