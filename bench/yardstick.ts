import { measureCpu } from './cpu.ts'
import type { BenchContext } from './part.ts'
import { findPgbench, runPgbench } from './pgbench.ts'
import { type BenchDatabase, isCluster } from './postgres.ts'
import { toolCall } from './sessions.ts'

/*
 * What PostgreSQL can do on this machine with the same rows, driven by pgbench: the columns of `entries` and its
 * primary key, but not its second unique key; one statement a transaction, prepared; a session out of 1,000 at random;
 * the numbers from a sequence, of which each connection takes 1,000 at a time. Nothing is looked up, locked, updated or
 * returned: no session is checked, no head is moved, and the numbers have gaps.
 */
const TABLE = [
  'CREATE TABLE yardstick (LIKE entries)',
  'ALTER TABLE yardstick ADD PRIMARY KEY (project_id, session_id, seq)',
  'CREATE SEQUENCE yardstick_seq CACHE 1000',
]

/** On a cluster, where its rows belong to one project, and so to one worker. */
const DISTRIBUTE = "SELECT create_distributed_table('yardstick', 'project_id', colocate_with => 'entries')"

const COLUMNS = 'project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data'
// pgbench sends :i and :data as parameters, since the protocol is `prepared`.
const ROW = `('00000000-0000-7000-8000-000000000000', ('00000000-0000-7000-8000-' || lpad(:i, 12, '0'))::uuid,
  nextval('yardstick_seq'), now(), now(), gen_random_uuid(), 270, 0, 'event', 'tool_call', :data::jsonb)`

/** One row of it as a statement of its own: its session's number, and its data. */
export const YARDSTICK_INSERT = `INSERT INTO yardstick (${COLUMNS}) VALUES ${ROW.replace(':i', '$1').replace(':data', '$2')}`

function script(rows: number): string {
  return `\\set i random(1, 1000)
INSERT INTO yardstick (${COLUMNS})
VALUES ${Array.from({ length: rows }, () => ROW).join(',\n')};
`
}

/** What the yardstick did in one run. */
export interface YardstickResult {
  /** Rows a second. */
  per_second: number
  /** CPU time a row, in microseconds, where there is /proc: of PostgreSQL and of pgbench. */
  cpu?: { postgres_us: number; generator_us: number }
}

/** Runs the yardstick once: with so many rows a statement, so many clients, so long. */
export type Yardstick = (rows: number, clients: number, seconds: number) => Promise<YardstickResult>

/** Prepares the yardstick's table. Gives undefined where pgbench is missing. */
export async function prepareYardstick(
  { directory }: Pick<BenchContext, 'directory'>,
  database: BenchDatabase,
): Promise<Yardstick | undefined> {
  const pgbench = await findPgbench()
  if (!pgbench) return undefined
  for (const statement of TABLE) await database.query(statement)
  if (await isCluster(database.url)) await database.query(DISTRIBUTE)
  const variables = { data: JSON.stringify(toolCall(0).data) }
  return async (rows, clients, seconds) => {
    const options = { url: database.url, clients, seconds, script: script(rows), directory, variables }
    // pgbench is a child of this process, which does nothing else meanwhile.
    const stopMeasuring = await measureCpu({ services: [process], database })
    const { transactions, per_second } = await runPgbench(pgbench, options)
    const used = await stopMeasuring()
    const a_row = (us: number) => Math.round((us / (rows * transactions)) * 10) / 10
    return {
      per_second: rows * per_second,
      ...(used && { cpu: { postgres_us: a_row(used.postgres_us), generator_us: a_row(used.service_us) } }),
    }
  }
}
