import { AnnalsError } from '../errors.js'

/** SQLSTATE of an error that PostgreSQL sent; undefined for errors of the driver or the socket. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code)
    ? code
    : undefined
}

/** Serialization failure and deadlock: the transaction did nothing and can be run again. */
export function isTransient(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '40001' || state === '40P01'
}

/**
 * A unique violation. The constraint's name does not matter, because distributed tables rename constraints. What Citus
 * inserts by COPY from the coordinator fails with its own SQLSTATE and only the worker's message.
 */
export function isUniqueViolation(error: unknown): boolean {
  return sqlStateOf(error) === '23505' || isRelayed(error, /^duplicate key value violates unique constraint/)
}

/** A foreign key violation: the referenced row is gone, or a referencing row still exists. */
export function isForeignKeyViolation(error: unknown): boolean {
  return sqlStateOf(error) === '23503' || isRelayed(error, /violates foreign key constraint/)
}

function isRelayed(error: unknown, message: RegExp): boolean {
  return sqlStateOf(error) === 'XX000' && message.test((error as Error).message)
}

/** The table does not exist: nobody has migrated this database yet. */
export function isUndefinedTable(error: unknown): boolean {
  return sqlStateOf(error) === '42P01'
}

/**
 * The value itself cannot be stored: class 22 (data exceptions: U+0000 and surrogates in jsonb, numbers out of range)
 * and 54 (program limits: nesting, size). Always the caller's fault.
 */
export function isUnstorable(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== undefined && (state.startsWith('22') || state.startsWith('54'))
}

/** Data of a file that the schema refuses: the same, or a constraint (class 23), or an unknown column. */
export function isRefusedData(error: unknown): boolean {
  return isUnstorable(error) || isUniqueViolation(error) || /^(23|42)/.test(sqlStateOf(error) ?? '')
}

// 08: connection; 53: out of connections, memory or disk; 57P: shut down or starting; 25006: read-only; 25P03 and 25P04:
// a transaction that took too long for the role, and its connection with it.
const AWAY = /^(08|53|57P|58)|^25006$|^25P0[34]$|^57014$|^55P03$/

/** Citus lost one of the workers that a statement needs, or is being killed while it waits for one. */
const LOST_MACHINE = /^failure on connection marked as essential|^postmaster was shut down/

/** The database is unavailable, full, read-only or too slow: waiting may help, and the caller gets 503. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof AnnalsError) return error.error === 'unavailable'
  const state = sqlStateOf(error)
  if (state !== undefined) return AWAY.test(state) || isRelayed(error, LOST_MACHINE)
  return isConnectionLoss(error)
}

/** A statement was in flight when the database became silent, or was to be sent then. */
export class DatabaseSilent extends Error {
  override readonly name = 'DatabaseSilent'

  constructor() {
    super('The database does not answer')
  }
}

const LOSS =
  /Connection terminated|connection error|timeout exceeded|timeout expired|Query read timeout|Client has encountered/i

/** The connection broke or could not be made; what was sent on it may or may not have been executed. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof DatabaseSilent) return true
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return true
  const state = sqlStateOf(error)
  if (state !== undefined) return /^(08|57P|25P0[34])/.test(state)
  return LOSS.test(error.message)
}

/**
 * The part of an error that is logged. PostgreSQL's detail, where and query may quote stored data, and so may the
 * message of a data error. So only the SQLSTATE, the severity and the statement's name are kept, and the message if
 * it cannot quote anything.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) }
  const { statement, cause } = error as Error & { statement?: string; cause?: unknown }
  const sqlstate = sqlStateOf(error)
  const quotes = isUnstorable(error) || isUniqueViolation(error) || sqlstate?.startsWith('23')
  return {
    type: error.name,
    message: quotes ? '(omitted: it may quote stored data)' : error.message,
    ...(sqlstate !== undefined && { sqlstate }),
    ...(statement !== undefined && { statement }),
    ...(sqlstate === undefined && { stack: error.stack }),
    ...(cause !== undefined && { cause: describeError(cause) }),
  }
}

/** What a machine of a cluster says of another one, in libpq's words or PostgreSQL's. */
const REFUSED =
  /connection to the remote node (\S+) failed with the following error: (?:FATAL: {1,9})?([^\n]*)/i
const DOES_NOT_LET_IN = /password|authentication|pg_hba\.conf|does not exist/i

/** What operators can mend where no waiting helps: the reason, and what to do. */
export function operatorsSentence(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const cause = operatorsSentence(error.cause)
  if (cause !== undefined) return cause
  const { message } = error
  const state = sqlStateOf(error)
  if (state === '42501')
    return `The database user lacks a right (${message}). Grant it what it needs on all tables, or run this as their owner.`
  if (state === 'XX001' || state === 'XX002')
    return `PostgreSQL cannot read its own data (${message}). A disk, or a crash without fsync, has damaged it: keep a copy of its files, and restore a backup into a new database.`
  const [, machine, reason = ''] = REFUSED.exec(message) ?? []
  if (machine === undefined || !DOES_NOT_LET_IN.test(reason)) return undefined
  return `The machines of the cluster do not let each other in: ${machine} (${reason}). Let them in as docs/scale.md says ("Citus", step 3), and run this again.`
}

/** What a reachable database says keeps it from storing anything: more than waiting is needed. */
const TROUBLES: Readonly<Record<string, string>> = {
  '53100': "The database's disk is full. Nothing was stored; retry once the operator has made room.",
  '25006': 'The database only reads at the moment. Nothing was stored; retry shortly.',
}

/** The sentence for callers, where the cause tells more than that the database is unavailable. */
export function troubleOf(cause: unknown): string | undefined {
  return TROUBLES[sqlStateOf(cause) ?? '']
}

/**
 * The database is unavailable: it cannot be reached, or the connection broke. `in_doubt` tells whether a write had
 * already been sent, outside a transaction or as its commit: nobody knows whether it took effect.
 */
export class DatabaseAway extends AnnalsError {
  constructor(
    readonly in_doubt: boolean,
    cause: unknown,
  ) {
    super('unavailable', troubleOf(cause), { cause })
  }
}

/**
 * The outcome of a failed write that was its own transaction. `rolled back`: nothing took effect. `in doubt`: nobody
 * knows.
 */
export type Outcome = 'rolled back' | 'in doubt'

/**
 * libpq's and Citus's words for a connection to a worker that could not be made: nothing was sent on it. All other
 * losses of such a connection have the same SQLSTATE.
 */
const NEVER_CONNECTED =
  /Is the server running on that host|could not (?:translate|connect|establish)|No route to host|the database system is |password|authentication|pg_hba\.conf/i

/**
 * Citus's answers where it had sent a statement or its COMMIT on to a worker without hearing the end of it. The second is
 * that of a machine that is being killed.
 */
const UNKNOWN_END = /^could not commit transaction for shard|^postmaster was shut down/

/**
 * Reads the outcome of a statement outside a transaction, or of COMMIT, from its error. On Citus a stored function is
 * one command to one worker, which commits by itself: where the coordinator loses the worker, or gives up waiting for
 * it (57014), the worker may have committed, though the coordinator reports a plain error.
 *
 * packages/kits/test/postgres/cluster_errors.json has what a real cluster answered.
 */
export function outcomeOf(error: unknown, distributed: boolean): Outcome {
  const message = error instanceof Error ? error.message : ''
  const state = sqlStateOf(error)
  if (state === 'XX000') return UNKNOWN_END.test(message) ? 'in doubt' : 'rolled back'
  if (state === '57014') return distributed && / timeout$/.test(message) ? 'in doubt' : 'rolled back'
  if (!isConnectionLoss(error)) return 'rolled back'
  return state?.startsWith('08') && NEVER_CONNECTED.test(message) ? 'rolled back' : 'in doubt'
}

/**
 * The same for a COMMIT. An ERROR that answers it comes from before the commit, and Citus then rolls back on all
 * machines, but for those that say otherwise.
 */
export function outcomeOfCommit(error: unknown, distributed: boolean): Outcome {
  const isAnswer = (error as { severity?: unknown }).severity === 'ERROR'
  if (isAnswer && sqlStateOf(error) !== 'XX000') return 'rolled back'
  return outcomeOf(error, distributed)
}

/** Whether the connection to the server itself broke: the driver raised the error, or the server ended the session. */
export function brokeConnection(error: unknown): boolean {
  const severity = (error as { severity?: unknown }).severity
  return isConnectionLoss(error) && severity !== 'ERROR'
}
