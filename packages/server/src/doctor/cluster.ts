import type { Database } from '../postgres/database.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'
import { READ_SETTINGS } from './doctor_queries.js'

const RECOVERY_MS_HIGH = 5_000

/** How long a Citus cluster leaves a transaction over several machines in between. Nothing on a single server. */
export async function checkCluster(database: Database): Promise<Diagnosis[]> {
  const [setting] = await database.query(READ_SETTINGS, [['citus.recover_2pc_interval']])
  if (!setting) return []
  const interval_ms = Number(setting.setting)
  const found = `citus.recover_2pc_interval is ${interval_ms / 1_000} s`
  if (interval_ms > 0 && interval_ms <= RECOVERY_MS_HIGH) return [well('cluster', found)]
  return [
    wrong(
      'cluster',
      'warning',
      found,
      "If a machine fails between the two phases of a commit, what was written to projects and keys stays invisible, and its locks held, for that long: ALTER SYSTEM SET citus.recover_2pc_interval = '2s', and SELECT pg_reload_conf(), on the coordinator and on each worker.",
    ),
  ]
}
