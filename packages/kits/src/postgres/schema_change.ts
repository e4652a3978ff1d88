import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { DatabaseNotReady, StartError } from '../errors.js'
import { cancelBackend } from './cancel_statement.js'
import { isUnavailable, sqlStateOf } from './database_errors.js'
import { type ConnectionTarget, onSingleConnection, singleConnection } from './single_connection.js'

/** Runs work that changes the schema on a separate connection. @throws StartError without one */
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

function lost(cause: Error): DatabaseNotReady {
  return new DatabaseNotReady(
    `The database became unavailable (${cause.message}). Run this again when it is back.`,
    { cause },
  )
}

/**
 * How long a change of the schema waits for a lock: whatever wants the table meanwhile waits behind it. Longer than
 * PostgreSQL's deadlock_timeout of 1 s, after which it ends an autovacuum that is in the way.
 */
const LOCK_MS_MAX = 1_500
const PAUSE_MS = { first: 1_000, max: 15_000 }
/** For how long it is tried again. */
const RETRIES_MS_MAX = 300_000

export interface SchemaTransactionOptions {
  signal?: AbortSignal | undefined
  /** Told once, in a sentence, that it waits for a lock. */
  onProgress?: ((sentence: string) => void) | undefined
  retries_ms_max?: number
}

/**
 * From here on, the transaction waits for no lock for long, on no machine of a cluster: callers have to wait behind it.
 * Locks that only other migrations hold are taken before.
 */
export async function boundLockWaits(client: pg.Client): Promise<void> {
  await client.query("SET LOCAL citus.propagate_set_commands TO 'local'")
  await client.query(`SET LOCAL lock_timeout TO ${LOCK_MS_MAX}`)
}

/**
 * Runs work in one transaction, again while it cannot have a lock. When `signal` aborts, PostgreSQL cancels its
 * statement, instead of finishing what nobody waits for.
 * @throws DatabaseNotReady if it cannot have its locks
 */
export async function schemaTransaction<T>(
  client: pg.Client,
  target: ConnectionTarget,
  work: () => Promise<T>,
  options: SchemaTransactionOptions = {},
): Promise<T> {
  const { signal, onProgress, retries_ms_max = RETRIES_MS_MAX } = options
  const until = performance.now() + retries_ms_max
  for (let pause_ms = PAUSE_MS.first, attempt = 1; ; attempt++) {
    try {
      return await runOnce(client, target, work, signal)
    } catch (error) {
      signal?.throwIfAborted()
      if (sqlStateOf(error) !== LOCK_NOT_AVAILABLE) throw error
    }
    const holder = await findHolder(client, target)
    if (performance.now() + pause_ms > until)
      throw new DatabaseNotReady(
        `A table could not be locked within ${Math.round(retries_ms_max / 1_000)} s, because ${holder} uses it. Nothing was changed. Wait until it ends, or end it, and try again.`,
      )
    if (attempt === 1)
      onProgress?.(
        `Waiting for a lock: ${holder} uses the table. Trying again for up to ${Math.round(retries_ms_max / 1_000)} s; each attempt holds up callers for at most ${LOCK_MS_MAX / 1_000} s`,
      )
    await sleep(pause_ms, undefined, { signal }).catch(() => signal?.throwIfAborted())
    pause_ms = Math.min(pause_ms * 2, PAUSE_MS.max)
  }
}

const LOCK_NOT_AVAILABLE = '55P03'

/** The oldest transaction on this machine that has locked one of our tables. Row: holder, if there is one. */
const FIND_HOLDER = `SELECT concat('process ', a.pid, ' (', concat_ws(', ', nullif(a.application_name, ''),
  'for ' || floor(extract(epoch FROM clock_timestamp() - a.xact_start)) || ' s'), ')') AS holder
FROM pg_stat_activity a
WHERE a.pid <> pg_backend_pid() AND EXISTS (
  SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
  WHERE l.pid = a.pid AND l.granted AND c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
ORDER BY a.xact_start LIMIT 1`

/** Finds the holder of the lock, as far as that can be seen. On a cluster it may be on any machine. */
async function findHolder(client: pg.Client, target: ConnectionTarget): Promise<string> {
  const ask = target.distributed
    ? `SELECT r.result || ' on ' || coalesce(n.nodename || ':' || n.nodeport, 'the coordinator') AS holder
FROM run_command_on_all_nodes($holder$${FIND_HOLDER}$holder$) r LEFT JOIN pg_dist_node n ON n.nodeid = r.nodeid
WHERE r.success AND r.result <> '' ORDER BY r.result LIMIT 1`
    : FIND_HOLDER
  const { rows } = await client.query<{ holder: string }>(ask).catch(() => ({ rows: [] }))
  return rows[0]?.holder ?? 'another transaction'
}

async function runOnce<T>(
  client: pg.Client,
  target: ConnectionTarget,
  work: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  let end = () => {}
  try {
    await client.query('BEGIN')
    end = await cancelOnAbort(client, target, signal)
    await liftLimits(client)
    const result = await work()
    end()
    await client.query('COMMIT')
    return result
  } catch (error) {
    end()
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** A role's own limits would end a long migration in the middle, at each attempt. */
async function liftLimits(client: pg.Client): Promise<void> {
  await client.query("SET LOCAL citus.propagate_set_commands TO 'local'")
  const { rows } = await client.query<{ name: string }>(
    "SELECT s.name FROM pg_settings s WHERE s.name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')",
  )
  for (const { name } of rows) await client.query(`SET LOCAL ${name} TO 0`)
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
