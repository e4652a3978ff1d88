/**
 * How PostgreSQL plans for the connections that serve requests. Every such statement is written so that it has one
 * good plan, by keys, whatever its parameters and however much there is:
 *   - the plan is made once a connection: planning took longer than running (1.9 against 0.8 ms for a flush of one
 *     event, 0.8 against 0.6 ms for a filtered list);
 *   - one that was made while the tables were empty must not stay a sequential scan when they have grown, so there
 *     are none, and no parallel workers and no compilation that only pay for such;
 * tests/database/statement_plans.test.ts holds the statements to it, on a server's own settings as well.
 */
export const REQUEST_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  jit: 'off',
  max_parallel_workers_per_gather: '0',
}
