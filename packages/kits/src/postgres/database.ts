import { driverSocket, NotExecuted, type Parameter, type Row } from '@annals/pg-pipeline'
import pg from 'pg'
import { FairSemaphore, type FairSemaphoreLimits } from '../fairness/fair_queue.js'
import type { WithObjects } from '../outgoing/object_store.js'
import type { AvailabilityProbe } from './availability_probe.js'
import { orCancelled } from './cancel_statement.js'
import {
  brokeConnection,
  DatabaseAway,
  DatabaseSilent,
  isTransient,
  isUnavailable,
  outcomeOf,
  outcomeOfCommit,
  sqlStateOf,
} from './database_errors.js'
import { type GroupedRead, GroupedReads, isSent, NotFulfilled, runTogether } from './grouped_reads.js'
import { HostedClient } from './hosts.js'
import { connectionOptions, LIFT_TRANSACTION_LIMIT, statementBounds, UNBOUNDED } from './pool_settings.js'
import type { ConnectionTarget, ServerTraits } from './single_connection.js'
import { isBrief, isRead, type Statement } from './statement.js'

export { type ConnectionTarget, DatabaseAway, type Parameter, type Row }

/** Runs statements: the pool, or one connection inside a transaction. */
export interface Queryable extends WithObjects {
  /**
   * Runs one statement and returns its rows. `onSending` is called when a connection is there and the statement is
   * about to be sent: nothing can have happened before, and if it throws, nothing is sent.
   * @throws DatabaseAway
   */
  query(statement: Statement, parameters: readonly Parameter[], onSending?: () => void): Promise<Row[]>
}

export interface Database extends Queryable {
  /** It is a Citus cluster. */
  readonly distributed?: boolean
  /** Runs `work` in one transaction; repeats it if PostgreSQL asks for that (40001, 40P01). */
  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T>
}

/** Whose data a statement is about, and what runs it. A request is one, too. */
export interface Tenant<Runs extends Queryable = Queryable> {
  database: Runs
  project_id: string
}

export interface DatabasePool extends Database {
  /**
   * Runs `work`, which only reads, in one transaction that sees one project's rows as they are when it begins, for as
   * long as it lasts; on a cluster, each machine as of its own first statement, and a project is on one machine. It is
   * never repeated. It also works on a standby. @throws SnapshotLost
   */
  snapshot<T>(work: (connection: Queryable) => Promise<T>): Promise<T>
  close(): Promise<void>
  /** Open, idle and awaited connections. */
  usage(): { total: number; idle: number; waiting: number }
  /** Has every connection that is open now closed instead of used again. */
  renew(): void
  /** Nothing is committed any more: writes are refused until something is. */
  readonly stalls: boolean
  /** The machine that has a project, as far as is known. */
  machineOf?(project_id: string): string | undefined
}

export interface DatabaseOptions extends WithObjects {
  target: ConnectionTarget
  connections_max: number
  /** Longest wait for a connection, in ms. */
  wait_ms_max: number
  /** Longest run of one statement in the server, and longest pause between two of a transaction, in ms; 0: no limit. */
  statement_ms_max: number
  /** Settings of PostgreSQL for these connections, such as plan_cache_mode. */
  settings?: Record<string, string>
  /** Ends statements when the database becomes silent; without it they wait as long as a statement may run. */
  probe?: AvailabilityProbe | undefined
  /** Ends writes when nothing is committed any more; without it they wait as long as the driver does. */
  commits?: AvailabilityProbe | undefined
  /** How long a connection is used, in ms. */
  lifetime_ms_max?: number
  /** Shared by pools that lead to the same server. */
  renewal?: Renewal | undefined
  /** Called with each new connection, which is closed if this fails. */
  onConnect?: (client: pg.ClientBase) => Promise<void>
  /** When it aborts, statements in flight are cancelled, and these and all others fail with its reason, except those that outlive it. */
  signal?: AbortSignal
  /** Called for idle connections that fail. */
  onIdleError?: (error: Error) => void
  /** Called for each statement and transaction that failed. */
  onFailure?: (error: unknown) => void
}

/**
 * When connections were last found to lead to a server, or to belong to a role, that could only read. Those that were
 * opened before are closed instead of used: they would stay so after a failover, or after the role may write again.
 */
export interface Renewal {
  at: number
}

// Text in, text out: the driver parses nothing, so no digits or microseconds are lost.
const AS_TEXT = { getTypeParser: () => (value: unknown) => value }
const ATTEMPTS_MAX = 5
const KEEP_ALIVE_MS = 10_000
/** Least time between two renewals: while a server can only be read, each write would cost a new connection. */
const RENEWAL_MS = 1_000
const READ_ONLY = '25006'

/**
 * Opens a pool. It connects when it is first used. If the target is `pooled`, session state is avoided: statements
 * are not prepared, `settings` do not apply, and a statement that takes too long is abandoned here while the server
 * goes on, unless the role has a statement_timeout.
 */
export function openDatabase(options: DatabaseOptions): DatabasePool {
  const { pooled = false, distributed = false } = options.target
  const isUnbounded = options.statement_ms_max === 0
  const settings = isUnbounded ? { ...UNBOUNDED, ...options.settings } : options.settings
  const lift = (client: pg.ClientBase) => client.query(LIFT_TRANSACTION_LIMIT)
  const onConnect = options.onConnect ?? (isUnbounded && !pooled ? lift : undefined)
  const pool = new pg.Pool({
    Client: HostedClient as unknown as new () => pg.Client,
    ...options.target,
    max: options.connections_max,
    connectionTimeoutMillis: options.wait_ms_max,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: (options.lifetime_ms_max ?? 0) / 1_000,
    keepAlive: true,
    // The machine's own default would keep a silently broken idle connection for two hours.
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'annals',
    ...(!pooled && { options: connectionOptions(options.target, settings) }),
    types: AS_TEXT as unknown as pg.CustomTypesConfig,
    stream: driverSocket,
    ...(onConnect && { onConnect }),
    ...statementBounds(options.statement_ms_max, pooled),
  })
  pool.on('connect', (client) => {
    opened.set(client, performance.now())
    client.on('notice', ({ routine }) => routine === NOT_REPLICATED && unreplicated.add(client))
  })
  // One that is being closed may still hear that the server stops.
  pool.on('error', (error) => pool.ending || options.onIdleError?.(error))
  const renewal = options.renewal ?? { at: 0 }
  const bound = { ...options, renewal, pool, pooled, distributed }
  const reads = new GroupedReads(
    (group) => void runGroup(bound, group),
    () => pool.options.max - pool.totalCount + pool.idleCount,
  )
  const connections: Connections = { ...bound, ...(!pooled && { reads }) }
  return {
    query: (statement, parameters, onSending) => runOnPool(connections, statement, parameters, onSending),
    transaction: (work) => transaction(connections, work),
    snapshot: (work) => snapshot(connections, work),
    close: () => pool.end(),
    renew: () => renew(renewal),
    get stalls() {
      return options.commits?.silent ?? false
    },
    objects: options.objects,
    distributed,
    usage: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  }
}

interface Connections extends DatabaseOptions, ServerTraits {
  pool: pg.Pool
  renewal: Renewal
  /** Where statements can be prepared. */
  reads?: GroupedReads
}

const opened = new WeakMap<pg.ClientBase, number>()

/** Where PostgreSQL says that somebody has cancelled the wait of a commit for its synchronous standby. */
const NOT_REPLICATED = 'SyncRepWaitForLSN'
const unreplicated = new WeakSet<pg.ClientBase>()

function renew(renewal: Renewal): void {
  const now = performance.now()
  if (now - renewal.at >= RENEWAL_MS) renewal.at = now
}

/** Whether a connection must be closed for the error that its statement ended with, and not go back to the pool. */
function isSpoilt(client: pg.PoolClient, error: unknown, { signal, renewal, target }: Connections): boolean {
  const cause = (error as Error).cause ?? error
  if (sqlStateOf(cause) === READ_ONLY) {
    renew(renewal)
    if ('hosts' in target) target.hosts?.forget()
  }
  return signal?.aborted || brokeConnection(cause) || opened.get(client)! < renewal.at
}

async function runOnPool(
  bound: Connections,
  statement: Statement,
  parameters: readonly Parameter[],
  onSending?: () => void,
): Promise<Row[]> {
  const connections = statement.outlivesAbort ? withoutSignal(bound) : bound
  // On a cluster one machine has all rows only of what is asked of shards.
  const isAlone = connections.distributed ? !statement.only_if : onSending !== undefined
  const isGrouped = !isAlone && isBrief(statement, parameters)
  for (let attempt = 1; ; attempt++) {
    const reads = isGrouped && attempt === 1 ? connections.reads : undefined
    let client: pg.PoolClient | undefined
    try {
      if (reads) return await reads.run(statement, parameters, onSending)
      client = await connect(connections, isRead(statement))
      onSending?.()
      const rows = await run(client, statement, parameters, connections)
      client.release()
      return rows
    } catch (error) {
      // A broken connection is not returned to the pool; after an error of the statement it remains usable.
      client?.release(isSpoilt(client, error, connections))
      if (error instanceof NotExecuted) continue
      if ((client || reads) && isTransient(error) && attempt < ATTEMPTS_MAX) continue
      if (!(error instanceof NotFulfilled)) connections.onFailure?.(error)
      throw givenUp(error)
    }
  }
}

/** Runs reads together on one connection, and settles each. */
async function runGroup(connections: Connections, reads: readonly GroupedRead[]): Promise<void> {
  let client: pg.PoolClient
  try {
    client = await connect(connections, true)
  } catch (error) {
    for (const { reject } of reads) reject(error)
    return
  }
  const sent = reads.filter(isSent)
  const answers = runTogether(client, sent).map((answer, index) =>
    rowsOf(client, sent[index]!.statement, answer, connections),
  )
  const settled = await Promise.allSettled(answers)
  client.release(
    settled.some((one) => one.status === 'rejected' && isSpoilt(client, one.reason, connections)),
  )
  for (const [index, one] of settled.entries())
    if (one.status === 'fulfilled') sent[index]!.resolve(one.value)
    else sent[index]!.reject(one.reason)
}

function withoutSignal({ signal: _, ...connections }: Connections): Connections {
  return connections
}

async function connect(connections: Connections, reads: boolean): Promise<pg.PoolClient> {
  for (;;) {
    const client = await connectOnce(connections, reads)
    if (opened.get(client)! >= connections.renewal.at) return client
    client.release(true)
  }
}

async function connectOnce(
  { pool, probe, commits, signal, target }: Connections,
  reads: boolean,
): Promise<pg.PoolClient> {
  if (probe?.silent || (commits?.silent && !reads)) throw new DatabaseAway(false, new DatabaseSilent())
  signal?.throwIfAborted()
  const connecting = pool.connect()
  try {
    if (signal) return await orCancelled(connecting, signal, target)
    // One that is idle is there at once.
    const isThere = pool.idleCount > 0 && pool.idleCount >= pool.waitingCount
    return await (isThere ? connecting : (probe?.orSilence(connecting) ?? connecting))
  } catch (error) {
    // A connection that arrives after all is returned to the pool.
    connecting.then(
      (client) => client.release(),
      () => {},
    )
    signal?.throwIfAborted()
    // Without a connection, nothing was sent, and the caller can only wait.
    throw new DatabaseAway(false, error)
  }
}

async function run(
  client: pg.PoolClient,
  statement: Statement,
  parameters: readonly Parameter[],
  connections: Connections,
): Promise<Row[]> {
  connections.signal?.throwIfAborted()
  const answer =
    statement.prepared && !connections.pooled
      ? runTogether(client, [{ statement, parameters }])[0]!
      : client.query<Row>(statement.text, parameters as unknown[]).then(({ rows }) => rows)
  return rowsOf(client, statement, answer, connections)
}

/** The rows that a statement is answered with, unless the database is silent; or what its error says of it. */
async function rowsOf(
  client: pg.PoolClient,
  statement: Statement,
  answer: Promise<Row[]>,
  { probe, commits, signal, target, distributed }: Connections,
): Promise<Row[]> {
  let rows: Row[]
  try {
    // A commit in flight is waited for.
    const heard = commits && !isRead(statement) ? commits.orSilence(answer) : answer
    if (signal && statement !== COMMIT) rows = await orCancelled(heard, signal, target, client)
    else rows = await (probe?.orSilence(heard) ?? heard)
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw error
    const outcome = statement === COMMIT ? outcomeOfCommit(error, distributed) : outcomeOf(error, distributed)
    const in_doubt = outcome === 'in doubt' && !isRead(statement)
    if (in_doubt || isUnavailable(error)) throw new DatabaseAway(in_doubt, error)
    if (error instanceof Error) Object.assign(error, { statement: statement.name })
    throw error
  }
  // It is committed here alone, and lost if the standby takes over.
  if (unreplicated.delete(client))
    throw new DatabaseAway(true, new Error('the wait for a synchronous standby was cancelled'))
  return rows
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
      if (isRepeatable && attempt < ATTEMPTS_MAX) continue
      const failure = error instanceof CommitRefused ? error.cause : error
      connections.onFailure?.(failure)
      throw givenUp(failure)
    }
  }
}

/** What was in the way of others at each attempt did nothing, and may succeed later. */
function givenUp(error: unknown): unknown {
  return isTransient(error) ? new DatabaseAway(false, error) : error
}

/** A cluster could not commit on all of its machines, and rolled back on all. */
class CommitRefused extends Error {
  constructor(override readonly cause: unknown) {
    super('the commit was refused', { cause })
  }
}

/** Whether an answer to COMMIT may be another one if the transaction is run again: a machine did not take part. */
function isRefused(error: unknown): boolean {
  return error instanceof DatabaseAway ? !error.in_doubt : sqlStateOf(error) === 'XX000'
}

/** PostgreSQL ended a snapshot, as a standby does that is to apply what the primary has cleaned up. */
export class SnapshotLost extends Error {
  override readonly name = 'SnapshotLost'
}

async function snapshot<T>(
  connections: Connections,
  work: (connection: Queryable) => Promise<T>,
): Promise<T> {
  try {
    return await transactionOnce(
      connections,
      async (connection) => {
        await connection.query(WAIT_FOR_READER, [])
        return work(connection)
      },
      BEGIN_SNAPSHOT,
    )
  } catch (error) {
    const isLost = [error, (error as Error).cause].some(isTransient)
    if (isLost) throw new SnapshotLost((error as Error).message, { cause: error })
    connections.onFailure?.(error)
    throw error
  }
}

async function transactionOnce<T>(
  connections: Connections,
  work: (connection: Queryable) => Promise<T>,
  begin = BEGIN,
): Promise<T> {
  const client = await connect(connections, false)
  let broken = false
  let committing = false
  try {
    await run(client, begin, [], connections)
    const result = await work({
      objects: connections.objects,
      query: (statement, parameters) => run(client, statement, parameters, connections),
    })
    committing = true
    await run(client, COMMIT, [], connections)
    return result
  } catch (error) {
    if (isSpoilt(client, error, connections)) broken = true
    else await client.query('ROLLBACK').catch(() => (broken = true))
    if (committing && isRefused(error)) throw new CommitRefused(error)
    // Anything uncommitted is rolled back, whatever happened to the connection.
    throw error instanceof DatabaseAway && !committing ? new DatabaseAway(false, error.cause) : error
  } finally {
    client.release(broken)
  }
}

/** Behind a pooler, a connection's settings are the role's. */
const BEGIN: Statement = { name: 'begin', text: 'BEGIN ISOLATION LEVEL READ COMMITTED', prepared: false }
const BEGIN_SNAPSHOT: Statement = {
  name: 'begin_snapshot',
  text: 'BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY',
  prepared: false,
}
/** The reader may be slow, such as a pipe. Not every version has both settings. */
const WAIT_FOR_READER: Statement = {
  name: 'wait_for_reader',
  text: `SELECT set_config(s.name, '0', true) FROM pg_settings s WHERE s.name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')`,
  prepared: false,
}
const COMMIT: Statement = { name: 'commit', text: 'COMMIT', prepared: false }

/** A database whose users name an owner, and get no more than that owner's share. */
export interface SharedDatabase {
  /** @param owner the project, or a part of the service, such as `feed`, which has its own share */
  of(owner: string): Database
}

/** A pool whose connections are shared fairly between owners. */
export class SharedPool implements SharedDatabase {
  private readonly shares: FairSemaphore

  constructor(
    private readonly pool: DatabasePool,
    limits: FairSemaphoreLimits,
  ) {
    this.shares = new FairSemaphore(limits)
  }

  of(owner: string): Database {
    return new Share(this.pool, this.shares, owner)
  }

  /**
   * A pool's figures, and how many requests had to wait for a connection, and how many were refused one, in total.
   */
  usage() {
    const { waiting, ...connections } = this.pool.usage()
    return { ...connections, waiting: waiting + this.shares.waiting, ...this.shares.counts }
  }

  /** The machine that has a project, or the project itself as long as that is not known. */
  machineOf(project_id: string): string {
    return this.pool.machineOf?.(project_id) ?? project_id
  }

  close(): Promise<void> {
    return this.pool.close()
  }
}

class Share implements Database {
  constructor(
    private readonly pool: DatabasePool,
    private readonly shares: FairSemaphore,
    private readonly owner: string,
  ) {}

  get objects() {
    return this.pool.objects
  }

  query(statement: Statement, parameters: readonly Parameter[], onSending?: () => void): Promise<Row[]> {
    return this.shares.run(this.owner, () => this.pool.query(statement, parameters, onSending))
  }

  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.shares.run(this.owner, () => this.pool.transaction(work))
  }
}
