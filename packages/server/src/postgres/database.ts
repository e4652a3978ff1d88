import pg from 'pg'
import { AnnalsError } from '../errors.js'
import { type AvailabilityProbe, SILENCE } from './availability_probe.js'
import { orCancelled } from './cancel_statement.js'
import { isConnectionLoss, isRefusedCommit, isTransient, isUnavailable } from './database_errors.js'
import { startupOptions, statementBounds } from './pool_settings.js'
import type { ServerTraits } from './server_traits.js'
import { isRead, type Statement } from './statement.js'

/** Rows come as text and null only: numbers and JSON that pass through must not become JavaScript numbers. */
export type Row = Record<string, string | null>

export type Parameter = string | number | boolean | null | Buffer | ReadonlyArray<string | number | null>

/** What can run a statement: the pool, or one connection inside a transaction. */
export interface Queryable {
  /**
   * Runs one statement and gives its rows. `onSending` is called when a connection is there and the statement goes
   * out: until then nothing can have happened, and if it throws, nothing is sent.
   * @throws DatabaseAway
   */
  query(statement: Statement, parameters: readonly Parameter[], onSending?: () => void): Promise<Row[]>
}

/** What runs statements and transactions. */
export interface Database extends Queryable {
  /** Runs `work` in one transaction; repeats it when PostgreSQL asks for that (40001, 40P01). */
  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T>
  /** Statements run as they were planned once, whatever their parameters, under the settings for that. */
  readonly keepsPlans: boolean
}

/** The pool of connections to one database. */
export interface DatabasePool extends Database {
  close(): Promise<void>
  /** Connections open, idle and waited for. */
  usage(): { total: number; idle: number; waiting: number }
}

export type ConnectionTarget =
  | ({ connectionString: string } & Partial<ServerTraits>)
  | { host: string; port: number; database: string; user: string }

export interface DatabaseOptions {
  target: ConnectionTarget
  connections_max: number
  /** Longest wait for a connection, in ms. */
  wait_ms_max: number
  /** Longest run of one statement in the server, and wait between two of a transaction, in ms; 0: no limit. */
  statement_ms_max: number
  /** Settings of PostgreSQL for these connections, such as plan_cache_mode. */
  settings?: Record<string, string>
  /** Ends statements when the database falls silent; without one they wait for as long as a statement may run. */
  probe?: AvailabilityProbe
  /** Ends the work when it goes off: statements under way are cancelled, and these and all others fail with its reason. */
  signal?: AbortSignal
  /** Told of connections that fail while nobody uses them. */
  onIdleError?: (error: Error) => void
  /** Told of each statement and transaction that failed. */
  onFailure?: (error: unknown) => void
}

// Text in, text out: the driver parses nothing, so nothing loses digits or microseconds on the way.
const AS_TEXT = { getTypeParser: () => (value: unknown) => value }
const TRANSACTION_ATTEMPTS_MAX = 5
const KEEP_ALIVE_MS = 10_000

/**
 * Opens a pool. It connects when it is first used. Where the target is `pooled`, what belongs to a session is left
 * out: statements are not prepared, `settings` do not apply, and a statement that takes too long is given up here
 * while the server goes on, unless the role has a statement_timeout.
 */
export function openDatabase(options: DatabaseOptions): DatabasePool {
  const pooled = 'pooled' in options.target && options.target.pooled === true
  const pool = new pg.Pool({
    ...options.target,
    max: options.connections_max,
    connectionTimeoutMillis: options.wait_ms_max,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    // Else the machine's own default applies, by which an idle connection that broke in silence stays for two hours.
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'annals',
    ...(options.settings && !pooled && { options: startupOptions(options.settings) }),
    types: AS_TEXT as unknown as pg.CustomTypesConfig,
    ...statementBounds(options.statement_ms_max, pooled),
  })
  // A connection in use reports its end to the statement on it; without a listener of its own, an error that
  // comes twice, or between two statements, would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', (error) => options.onIdleError?.(error))
  const { probe, signal, target } = options
  const connections = { pool, pooled, probe, signal, target }
  const { onFailure } = options
  const watched = <T>(work: Promise<T>): Promise<T> =>
    onFailure === undefined
      ? work
      : work.catch((error) => {
          onFailure(error)
          throw error
        })
  return {
    query: (statement, parameters, onSending) =>
      watched(runOnPool(connections, statement, parameters, onSending)),
    transaction: (work) => watched(transaction(connections, work)),
    close: () => pool.end(),
    keepsPlans: !pooled && options.settings?.plan_cache_mode === 'force_generic_plan',
    usage: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  }
}

/**
 * The database is away: it cannot be reached, or it broke off. `in_doubt` tells whether a write had been sent by
 * then, outside a transaction or as its commit: nobody knows whether it took effect.
 */
export class DatabaseAway extends AnnalsError {
  constructor(
    readonly in_doubt: boolean,
    cause: unknown,
  ) {
    super('unavailable', 'The database cannot be reached at the moment. Nothing was stored; retry shortly.', {
      cause,
    })
  }
}

interface Connections {
  pool: pg.Pool
  pooled: boolean
  probe: AvailabilityProbe | undefined
  signal: AbortSignal | undefined
  target: ConnectionTarget
}

async function runOnPool(
  connections: Connections,
  statement: Statement,
  parameters: readonly Parameter[],
  onSending?: () => void,
): Promise<Row[]> {
  const client = await connect(connections)
  try {
    onSending?.()
    const rows = await run(client, statement, parameters, connections)
    client.release()
    return rows
  } catch (error) {
    // A connection that broke is not given back; an error of the statement leaves it usable.
    client.release(connections.signal?.aborted || isConnectionLoss((error as Error).cause ?? error))
    throw error
  }
}

async function connect({ pool, probe, signal, target }: Connections): Promise<pg.PoolClient> {
  if (probe?.silent) throw new DatabaseAway(false, new Error(SILENCE))
  signal?.throwIfAborted()
  const connecting = pool.connect()
  try {
    if (signal) return await orCancelled(connecting, signal, target)
    return await (probe?.orSilence(connecting) ?? connecting)
  } catch (error) {
    // One that comes after all goes back to the pool.
    connecting.then(
      (client) => client.release(),
      () => {},
    )
    signal?.throwIfAborted()
    // Whatever keeps a connection from being made: nothing was sent, and the caller can only wait.
    throw new DatabaseAway(false, error)
  }
}

async function run(
  client: pg.PoolClient,
  statement: Statement,
  parameters: readonly Parameter[],
  { probe, pooled, signal, target }: Connections,
): Promise<Row[]> {
  signal?.throwIfAborted()
  try {
    const answer = client.query<Row>({
      text: statement.text,
      values: parameters as unknown[],
      ...(statement.prepared && !pooled && { name: statement.name }),
    })
    // What is being committed is waited for.
    if (signal && statement !== COMMIT) return (await orCancelled(answer, signal, target, client)).rows
    return (await (probe?.orSilence(answer) ?? answer)).rows
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw error
    if (isUnavailable(error)) throw new DatabaseAway(isConnectionLoss(error) && !isRead(statement), error)
    if (error instanceof Error) Object.assign(error, { statement: statement.name })
    throw error
  }
}

async function transaction<T>(
  connections: Connections,
  work: (connection: Queryable) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transactionOnce(connections, work)
    } catch (error) {
      const isRepeatable = isTransient(error) || error instanceof CommitRefused
      if (isRepeatable && attempt < TRANSACTION_ATTEMPTS_MAX) continue
      throw error instanceof CommitRefused ? error.cause : error
    }
  }
}

/** A cluster could not bring the commit about on all of its machines, and rolled it back on all. */
class CommitRefused extends Error {
  constructor(override readonly cause: unknown) {
    super('the commit was refused', { cause })
  }
}

async function transactionOnce<T>(
  connections: Connections,
  work: (connection: Queryable) => Promise<T>,
): Promise<T> {
  const client = await connect(connections)
  let broken = false
  let committing = false
  try {
    await run(client, BEGIN, [], connections)
    const result = await work({
      query: (statement, parameters) => run(client, statement, parameters, connections),
    })
    committing = true
    await run(client, COMMIT, [], connections)
    return result
  } catch (error) {
    if (error instanceof DatabaseAway || connections.signal?.aborted) broken = true
    else await client.query('ROLLBACK').catch(() => (broken = true))
    if (committing && isRefusedCommit(error)) throw new CommitRefused(error)
    // What was not committed is rolled back, whatever became of the connection.
    throw error instanceof DatabaseAway && !committing ? new DatabaseAway(false, error.cause) : error
  } finally {
    client.release(broken)
  }
}

const BEGIN: Statement = { name: 'begin', text: 'BEGIN', prepared: false }
const COMMIT: Statement = { name: 'commit', text: 'COMMIT', prepared: false }
