import type { ConnectionTarget } from './single_connection.js'

/** Connections of a process for looking up keys and for checking whether the database answers, one each. */
export const RESERVED_CONNECTIONS = 2
/** Connections of a process for background work on changes. */
export const CHANGES_CONNECTIONS = 2

/**
 * Planner settings of the connections that serve requests. Each of their statements is written so that it has one
 * good plan, by keys, for all parameters and sizes:
 * - the plan is made once per connection: planning took longer than running (1.9 against 0.8 ms for a flush of one
 *   event, 0.8 against 0.6 ms for a filtered list);
 * - a plan made while the tables were empty must not keep reading a whole project after they have grown (an append
 *   cost three times as much until the tables were analyzed), so rows are found one by one: no sequential scans, no
 *   bitmaps, no joins that read one side whole, and none of parallel workers, compilation and memoization, which only
 *   pay for those.
 *
 * tests/gate/statement_plans.test.ts checks the statements, also with a server's own settings.
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

/**
 * The same on a target's server. Citus sends a statement to one machine by its project, which it must know when it
 * plans.
 */
export function requestSettings(target: ConnectionTarget): Record<string, string> {
  return target.distributed ? { ...REQUEST_SETTINGS, plan_cache_mode: 'force_custom_plan' } : REQUEST_SETTINGS
}

/**
 * Planner settings of a command that only reads, and reads much: it refuses to write, and uses a single server
 * process. The tables may never have been analyzed, as after a restore, so a piece must not become a scan of
 * everything.
 */
export const LONG_READ_SETTINGS = {
  default_transaction_read_only: 'on',
  max_parallel_workers_per_gather: '0',
  enable_seqscan: 'off',
  jit: 'off',
  work_mem: '64MB',
}

/**
 * Settings that change how values are written and read as text. Behind a pooler, where a connection cannot choose
 * it, no statement may depend on it: tests/database/times_as_text.test.ts.
 */
const TEXT_SETTINGS = {
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  extra_float_digits: '1',
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
}

/** What statements are written for: with a stricter default of a role's, they would fail where they meet. */
const ISOLATION = { default_transaction_isolation: 'read committed' }

/** The options of a connection: those of its URL, and over them what we need. */
export function connectionOptions(
  { options }: { options?: string | undefined },
  settings: Record<string, string> = {},
): string {
  return [options, startupOptions({ ...TEXT_SETTINGS, ...ISOLATION, ...settings })].filter(Boolean).join(' ')
}

/** Settings in the form in which the server takes them at the start of a connection. */
function startupOptions(settings: Record<string, string>): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
    .join(' ')
}

/** Of long work, which a role's own limits would end in the middle. */
export const UNBOUNDED = {
  statement_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  lock_timeout: '0',
}

/** The same for what only PostgreSQL 17 and newer have, so that no connection can ask for it as an option. */
export const LIFT_TRANSACTION_LIMIT =
  "SELECT set_config(s.name, '0', false) FROM pg_settings s WHERE s.name = 'transaction_timeout'"

/** Time limits of a statement, and between two statements of a transaction, as options of the driver; 0: no limit. */
export function statementBounds(statement_ms_max: number, pooled: boolean): object {
  if (statement_ms_max === 0) return {}
  return {
    ...(!pooled && {
      statement_timeout: statement_ms_max,
      // A process that vanished, or stands still, between two statements would keep its locks for hours.
      idle_in_transaction_session_timeout: statement_ms_max,
    }),
    // A silent database cannot cancel its own statement; then the client gives up.
    query_timeout: statement_ms_max + 1_000,
  }
}
