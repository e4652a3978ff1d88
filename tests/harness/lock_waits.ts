import { inject } from 'vitest'
import { queryRows } from './sql.ts'

/** Calls of stored functions, whose steps the server does not show. */
export const FUNCTION_CALLS = 'SELECT %\\_________($1%'

/** How many statements of a database whose text is like one of these wait for a lock of somebody else's. */
export async function lockWaits(databaseUrl: string, ...patterns: string[]): Promise<number> {
  // On Citus it is a worker that waits, and the coordinator only for its answer.
  const waiting =
    inject('testServer').mode === 'shared'
      ? 'SELECT waiting_gpid FROM citus_lock_waits WHERE blocked_statement ILIKE ANY ($1)'
      : `SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock' AND query ILIKE ANY ($1)`
  return (await queryRows(databaseUrl, waiting, [patterns])).length
}
