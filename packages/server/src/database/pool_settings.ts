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
