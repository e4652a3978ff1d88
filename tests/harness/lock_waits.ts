import type pg from 'pg'
import { inject } from 'vitest'
import { queryRows } from './sql.ts'

/**
 * How many statements wait for a lock that a connection holds, or behind one that does. What files that share the
 * database wait for among themselves does not count.
 */
export async function lockWaits(databaseUrl: string, holder: pg.Client): Promise<number> {
  // On Citus it is a worker that waits, and the coordinator only for its answer.
  const [own, waits] =
    inject('testServer').mode === 'shared'
      ? [
          'citus_calculate_gpid(citus_coordinator_nodeid(), $1)',
          'SELECT waiting_gpid AS waiting, blocking_gpid AS blocking FROM citus_lock_waits',
        ]
      : [
          '$1::int',
          `SELECT pid AS waiting, unnest(pg_blocking_pids(pid)) AS blocking
           FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
        ]
  const behindHolder = `WITH RECURSIVE waits AS MATERIALIZED (${waits}), behind (backend) AS (
      SELECT ${own} UNION SELECT waiting FROM waits JOIN behind ON blocking = backend
    ) SELECT backend FROM behind OFFSET 1`
  return (await queryRows(databaseUrl, behindHolder, [backendOf(holder)])).length
}

function backendOf(connection: pg.Client): number {
  return (connection as pg.Client & { processID: number }).processID
}
