import type { Database } from '@annals/kits/postgres/database.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'
import { LIST_HOLDERS, READ_SETTINGS, READ_VACUUM } from './doctor_queries.js'

/** Out of the 2,000 million transaction ids that exist. */
const XID_AGE_HIGH = 1_000_000_000
const LONG_S = 300

/** Whether vacuum keeps up: each append leaves a dead row in session_heads. */
export async function checkVacuum(database: Database): Promise<Diagnosis[]> {
  const settings = await database.query(READ_SETTINGS, [['autovacuum', 'track_counts']])
  const [row] = await database.query(READ_VACUUM, [])
  const found = settings.filter(({ setting }) => setting === 'off').map(({ name }) => `${name} is off`)
  if (row!.off_tables !== null) found.push(`autovacuum is off for ${row!.off_tables}`)
  const checks = found.map((off) =>
    wrong(
      'vacuum',
      'failure',
      off,
      'Tables grow and appends become slow: turn it on (ALTER SYSTEM RESET …, ALTER TABLE … RESET (autovacuum_enabled)).',
    ),
  )
  if (Number(row!.xid_age) > XID_AGE_HIGH)
    checks.push(
      wrong(
        'vacuum',
        'failure',
        `the oldest transaction id is ${row!.xid_age} old`,
        'PostgreSQL stops writing at 2,000 million: end what holds it (see transactions), then VACUUM (FREEZE).',
      ),
    )
  return checks.length > 0 ? checks : [well('vacuum', 'autovacuum is on')]
}

/** Finds sessions and slots that keep dead rows or old WAL for longer than Annals ever does. */
export async function checkHolders(database: Database, long_s = LONG_S): Promise<Diagnosis[]> {
  const rows = await database.query(LIST_HOLDERS, [long_s])
  if (rows.length === 0) return [well('transactions', `none is older than ${LONG_S / 60} minutes`)]
  return rows.map(({ what, name, age_s, detail }) => {
    const age = `${Math.round(Number(age_s) / 60)} minutes`
    if (what === 'slot') {
      const found = `replication slot ${name} is not used and keeps ${detail} of WAL`
      const todo = `It fills the disk: start its standby, or SELECT pg_drop_replication_slot('${name}').`
      return wrong('transactions', 'warning', found, todo)
    }
    if (what === 'prepared') {
      const found = `prepared transaction ${name} of ${detail} is ${age} old and keeps its locks`
      const todo = `Find out whose it is, then COMMIT PREPARED '${name}' or ROLLBACK PREPARED '${name}'.`
      return wrong('transactions', 'failure', found, todo)
    }
    const found = `process ${name} (${detail}) has had a transaction open for ${age}`
    const todo = `Dead rows cannot be cleared away meanwhile. If it is stuck: SELECT pg_terminate_backend(${name}).`
    return wrong('transactions', 'warning', found, todo)
  })
}
