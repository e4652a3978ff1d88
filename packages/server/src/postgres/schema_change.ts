import type pg from 'pg'
import { DatabaseNotReady, StartError } from '../errors.js'
import { cancelBackend } from './cancel_statement.js'
import { isUnavailable } from './database_errors.js'
import { type ConnectionTarget, onSingleConnection, singleConnection } from './single_connection.js'

/** Runs work that changes the schema, on a connection of its own. @throws StartError if there is none */
export async function onSchemaConnection<T>(
  target: ConnectionTarget,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  let is_connected = false
  try {
    return await onSingleConnection(singleConnection(target, 'annals migrate'), (client) => {
      is_connected = true
      return work(client)
    })
  } catch (error) {
    if (is_connected) throw isUnavailable(error) ? lost(error as Error) : error
    const { message, code } = error as Error & { code?: string }
    const Reason = isUnavailable(error) ? DatabaseNotReady : StartError
    throw new Reason(
      `The database cannot be reached (${message || code}). Check DATABASE_URL and that the server runs.`,
    )
  }
}

function lost({ message }: Error): DatabaseNotReady {
  return new DatabaseNotReady(`The database became unavailable (${message}). Run this again when it is back.`)
}

/**
 * Runs work in one transaction. When `signal` aborts, PostgreSQL cancels its statement, instead of finishing what nobody
 * waits for.
 */
export async function schemaTransaction<T>(
  client: pg.Client,
  work: () => Promise<T>,
  target: ConnectionTarget,
  signal: AbortSignal | undefined,
): Promise<T> {
  let end = () => {}
  try {
    await client.query('BEGIN')
    end = await cancelOnAbort(client, target, signal)
    const result = await work()
    end()
    await client.query('COMMIT')
    return result
  } catch (error) {
    end()
    await client.query('ROLLBACK').catch(() => {})
    signal?.throwIfAborted()
    throw error
  }
}

/** Returns a function to call before the transaction ends. */
async function cancelOnAbort(
  client: pg.Client,
  target: ConnectionTarget,
  signal: AbortSignal | undefined,
): Promise<() => void> {
  signal?.throwIfAborted()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const onAbort = () => void cancelBackend(target, rows[0]!.pid)
  signal?.addEventListener('abort', onAbort)
  return () => signal?.removeEventListener('abort', onAbort)
}
