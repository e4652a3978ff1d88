import { isConnectionLoss, sqlStateOf } from './database_errors.js'

/**
 * What an error says about a write that was its own transaction. `rolled back`: nothing took effect. `in doubt`: nobody
 * knows.
 */
export type Outcome = 'rolled back' | 'in doubt'

/**
 * libpq's and Citus's words for a connection to a worker that could not be made: nothing was sent on it. All other
 * losses of such a connection have the same SQLSTATE.
 */
const NEVER_CONNECTED =
  /Is the server running on that host|could not (?:translate|connect|establish)|No route to host|the database system is /i

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
 * packages/server/test/postgres/cluster_errors.json has what a real cluster answered.
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
