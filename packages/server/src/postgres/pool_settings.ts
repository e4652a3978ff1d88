import type { ConnectionTarget } from './database.js'

/** Connections of a process that only look keys up and tell whether the database answers: one each, beside the other. */
export const RESERVED_CONNECTIONS = 2

/**
 * How PostgreSQL plans for the connections that serve requests. Every such statement is written so that it has one
 * good plan, by keys, whatever its parameters and however much there is:
 *   - the plan is made once a connection: planning took longer than running (1.9 against 0.8 ms for a flush of one
 *     event, 0.8 against 0.6 ms for a filtered list);
 *   - one that was made while the tables were empty must not go on reading all of a project when they have grown
 *     (an append cost three times as much, until the tables were analyzed), so rows are found one by one: there are no
 *     sequential scans, no bitmaps, no joins that read one side whole, and no parallel workers, no compilation and no
 *     memory of what was found before that only pay for such;
 * tests/database/statement_plans.test.ts holds the statements to it, on a server's own settings as well.
 */
export const REQUEST_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_memoize: 'off',
  enable_material: 'off',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
}

/** The same on a target's server. Citus sends a statement to one machine by its project: it must know which when it plans. */
export function requestSettings(target: ConnectionTarget): Record<string, string> {
  const isDistributed = 'distributed' in target && target.distributed === true
  return isDistributed ? { ...REQUEST_SETTINGS, plan_cache_mode: 'force_custom_plan' } : REQUEST_SETTINGS
}

/**
 * How PostgreSQL plans for a command that only reads, and reads much: it refuses to write, and takes one process of the
 * server's. The tables may never have been analyzed, as after a restore: a piece must not become a scan of all.
 */
export const LONG_READ_SETTINGS = {
  default_transaction_read_only: 'on',
  max_parallel_workers_per_gather: '0',
  enable_seqscan: 'off',
  jit: 'off',
  work_mem: '64MB',
}

/** Settings as the server takes them at the start of a connection. */
export function startupOptions(settings: Record<string, string>): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

/** What bounds the time of a statement, and that between two of a transaction, as options of the driver; 0: nothing does. */
export function statementBounds(statement_ms_max: number, pooled: boolean): object {
  if (statement_ms_max === 0) return {}
  return {
    ...(!pooled && {
      statement_timeout: statement_ms_max,
      // A process that vanished, or stands still, between two statements would hold its locks for hours.
      idle_in_transaction_session_timeout: statement_ms_max,
    }),
    // A database that stopped answering cannot cancel its own statement; the client then gives up itself.
    query_timeout: statement_ms_max + 1_000,
  }
}
