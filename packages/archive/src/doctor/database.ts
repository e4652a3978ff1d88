import { FIND_MARKS } from '@annals/kits/changes/change_queries.js'
import type { Config } from '@annals/kits/configuration/config.js'
import {
  findLostWorkers,
  findOtherPlanners,
  findShutOut,
  findUnreached,
} from '@annals/kits/postgres/citus/workers.js'
import { connectionsOf, readUrl, traitsOf } from '@annals/kits/postgres/connection_target.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { FIND_VECTOR_TYPE } from '@annals/kits/postgres/vector_type.js'
import { LIST_DESTINATIONS } from 'annals/dist/proof/anchor_queries.js'
import { attempt, type Diagnosis, well, wrong } from './diagnosis.js'
import { PING, READ_CLOCK, READ_CONNECTIONS, READ_SERVER, READ_SETTINGS } from './doctor_queries.js'
import { checkHolders, checkVacuum } from './maintenance.js'
import { checkSchema } from './schema.js'

const POSTGRES_MIN = 15
const LATENCY_MS_HIGH = 10
const CLOCK_MS_OFF = 1_000
const ROUNDS = 5
const ANCHORS_LATE_S = 600
const NOT_ANCHORED =
  'What is stored meanwhile can be rewritten without being found: docs/proof.md, "Anchors". The log of the service has the reason.'

export async function checkDatabase(
  database: Database,
  config: Config,
  workers: number,
): Promise<Diagnosis[]> {
  // Without a connection nothing below can be checked; the caller reports that.
  await database.query(PING, [])
  return [
    await checkTransport(config),
    ...(await attempt('latency', () => checkLatency(database))),
    ...(await attempt('server', () => checkServer(database))),
    ...(await attempt('schema', () => checkSchema(database))),
    ...(await attempt('durability', () => checkDurability(database))),
    ...(await attempt('clock', () => checkClock(database))),
    ...(await attempt('connections', () => checkConnections(database, config, workers))),
    ...(await attempt('vacuum', () => checkVacuum(database))),
    ...(await attempt('transactions', () => checkHolders(database))),
    ...(await checkObjectStore(database)),
    ...(await attempt('anchors', () => checkAnchors(database, config))),
    ...(await attempt('vectors', () => checkVectors(database, config))),
    ...(await attempt('cluster', () => checkCluster(database, config))),
    // By itself, since a machine that hangs may keep it from an answer.
    ...(await attempt('cluster', () => checkMachines(database))),
  ]
}

const UNVERIFIED =
  'Somebody between the two machines can pretend to be the server: add sslmode=verify-full to DATABASE_URL, and sslrootcert=<file> if an authority of your own has signed its certificate.'

async function checkTransport({ database_url }: Config): Promise<Diagnosis> {
  const { transport = 'local' } = database_url ? await traitsOf(readUrl('DATABASE_URL', database_url)) : {}
  const found = {
    local: 'the database answers; it is on this machine',
    encrypted: 'the database answers; the connection is encrypted, and the server is verified',
    unverified: 'the connection is encrypted, but nothing verifies the server',
    'clear text': 'the connection to another machine is not encrypted',
  }[transport]
  if (transport === 'local' || transport === 'encrypted') return well('connection', found)
  const todo =
    transport === 'unverified'
      ? UNVERIFIED
      : 'Enable TLS on the server, and add ?sslmode=verify-full to DATABASE_URL.'
  return wrong('connection', 'warning', found, todo)
}

async function checkObjectStore({ objects }: Database): Promise<Diagnosis[]> {
  const check = 'attachments'
  if (!objects) return []
  try {
    await objects.check()
    return [well(check, 'the bucket can be reached')]
  } catch (error) {
    const found = `the bucket cannot be reached (${(error as Error).name})`
    const todo = 'Check the ANNALS_S3_ settings, that the bucket exists, and what these credentials may do.'
    return [wrong(check, 'failure', found, todo)]
  }
}

/** Whether the heads of chained logs are anchored, at each place to which they ever were. Nothing where they are at none. */
async function checkAnchors(
  database: Database,
  { proof_anchor, proof_anchor_ms }: Config,
): Promise<Diagnosis[]> {
  const late_s = Math.max(ANCHORS_LATE_S, (5 * proof_anchor_ms) / 1_000)
  const rows = await database.query(LIST_DESTINATIONS, [])
  if (rows.length === 0 && proof_anchor !== undefined)
    return [wrong('anchors', 'warning', 'nothing was anchored yet', 'Start the service with this setting.')]
  return rows.map(({ destination, nth, failure, passed_s }) => {
    const found = `${destination} has ${nth}`
    if (failure != null)
      return wrong('anchors', 'warning', `${found}; the last pass failed: ${failure}`, NOT_ANCHORED)
    const isLate = proof_anchor !== undefined && rows.length === 1 && Number(passed_s) > late_s
    return isLate
      ? wrong('anchors', 'warning', `${found}; the last pass was ${passed_s} s ago`, NOT_ANCHORED)
      : well('anchors', found)
  })
}

/** Whether the database can compare vectors, and how far these are. Nothing where the operator names no model. */
async function checkVectors(database: Database, { embeddings_url }: Config): Promise<Diagnosis[]> {
  if (embeddings_url === undefined) return []
  if ((await database.query(FIND_VECTOR_TYPE, [])).length === 0)
    return [
      wrong(
        'vectors',
        'failure',
        'the database lacks the extension vector',
        'Run CREATE EXTENSION vector there.',
      ),
    ]
  const marks = await database.query(FIND_MARKS, [])
  const waiting = marks
    .filter(({ consumer }) => consumer === 'vectors')
    .map(({ sessions }) => Number(sessions))
  const sessions = waiting.reduce((sum, count) => sum + count, 0)
  return [well('vectors', `${sessions.toLocaleString('en')} changed sessions wait for vectors`)]
}

async function checkLatency(database: Database): Promise<Diagnosis> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now()
    await database.query(PING, [])
    times.push(performance.now() - began)
  }
  const median = times.sort((a, b) => a - b)[ROUNDS >> 1]!
  const found = `${median.toFixed(1)} ms for a round trip`
  if (median <= LATENCY_MS_HIGH) return well('latency', found)
  return wrong(
    'latency',
    'warning',
    found,
    'Every append waits for at least one: run Annals near its database.',
  )
}

async function checkServer(database: Database): Promise<Diagnosis[]> {
  const [server] = await database.query(READ_SERVER, [])
  const { version, major, encoding, in_recovery, read_only, schema, can_create } = server!
  const checks = [
    Number(major) >= POSTGRES_MIN
      ? well('server', `PostgreSQL ${version}`)
      : wrong('server', 'failure', `PostgreSQL ${version}`, `Upgrade to ${POSTGRES_MIN} or newer.`),
  ]
  const add = (is_wrong: boolean, state: 'warning' | 'failure', found: string, todo: string) => {
    if (is_wrong) checks.push(wrong('server', state, found, todo))
  }
  add(
    encoding !== 'UTF8',
    'failure',
    `the database's encoding is ${encoding}`,
    'Create a database with ENCODING UTF8 (CREATE DATABASE … TEMPLATE template0) and move the data there by export and import.',
  )
  add(
    in_recovery === 't',
    'failure',
    'this server is a standby and accepts no writes',
    'Point DATABASE_URL at the primary, or promote this one.',
  )
  add(
    in_recovery !== 't' && read_only === 'on',
    'failure',
    'the database is read-only',
    'default_transaction_read_only is on: find where it was set (ALTER SYSTEM, ALTER DATABASE or ALTER ROLE), and RESET it.',
  )
  add(
    schema === null,
    'failure',
    'no schema in search_path is there for this user',
    'Create one, or name one that is: ALTER ROLE … SET search_path = public.',
  )
  add(
    schema !== null && can_create !== 't',
    'warning',
    'the database user cannot create tables',
    'Before an upgrade, run "annals migrate" as the owner, or grant CREATE on the schema.',
  )
  return checks
}

/** Settings that durability depends on, and what it means if each is off. */
const DURABLE: Record<string, { todo: string; state: 'failure' | 'warning' }> = {
  fsync: {
    state: 'failure',
    todo: 'A crash can destroy the database: ALTER SYSTEM RESET fsync, and reload.',
  },
  full_page_writes: {
    state: 'failure',
    todo: 'A crash can leave half-written pages: ALTER SYSTEM RESET full_page_writes, and reload.',
  },
  synchronous_commit: {
    state: 'failure',
    todo: 'Acknowledged appends can be lost: find where it was set (ALTER SYSTEM, ALTER ROLE or ALTER DATABASE), RESET it, and restart Annals.',
  },
  data_checksums: {
    state: 'warning',
    todo: 'Damage by a disk is not detected: stop the server and run pg_checksums --enable.',
  },
}

async function checkDurability(database: Database): Promise<Diagnosis[]> {
  const rows = await database.query(READ_SETTINGS, [Object.keys(DURABLE)])
  const off = rows.filter((row) => row.setting === 'off')
  if (off.length === 0) return [well('durability', 'fsync, full_page_writes, synchronous_commit are on')]
  return off.map(({ name }) => {
    const { state, todo } = DURABLE[name!]!
    return wrong('durability', state, `${name} is off`, todo)
  })
}

/** Compares clocks; the true difference is within half of the query's duration. */
async function checkClock(database: Database): Promise<Diagnosis> {
  const asked = Date.now()
  const [row] = await database.query(READ_CLOCK, [])
  const answered = Date.now()
  const off = Math.abs(Number(row!.now_ms) - (asked + answered) / 2)
  const least = Math.max(off - (answered - asked) / 2, 0)
  const found = `this machine and the database are ${(off / 1000).toFixed(3)} s apart`
  if (least < CLOCK_MS_OFF) return well('clock', found)
  return wrong(
    'clock',
    'warning',
    found,
    "Synchronize both by NTP: timestamps come from the database's clock, and the expiry of tokens is checked against both.",
  )
}

const RECOVERY_MS_HIGH = 5_000

/**
 * How long a Citus cluster leaves a transaction over several machines in between, whether its workers can be reached, and
 * how they plan. Nothing on a single server.
 */
async function checkCluster(database: Database, { database_url }: Config): Promise<Diagnosis[]> {
  const [setting] = await database.query(READ_SETTINGS, [['citus.recover_2pc_interval']])
  if (!setting || !database_url) return []
  const interval_ms = Number(setting.setting)
  const found = `citus.recover_2pc_interval is ${interval_ms / 1_000} s`
  const unreached = await findUnreached(database, readUrl('DATABASE_URL', database_url).connectionString)
  const planners = await findOtherPlanners(database)
  const lost = await findLostWorkers(database)
  return [
    interval_ms > 0 && interval_ms <= RECOVERY_MS_HIGH
      ? well('cluster', found)
      : wrong(
          'cluster',
          'warning',
          found,
          "If a machine fails between the two phases of a commit, what was written to projects and keys stays invisible, and its locks held, for that long: ALTER SYSTEM SET citus.recover_2pc_interval = '2s', and SELECT pg_reload_conf(), on the coordinator and on each worker.",
        ),
    unreached.length === 0
      ? well('cluster', 'each worker can be reached directly')
      : wrong(
          'cluster',
          'warning',
          `not reached directly: ${unreached.join(', ')}`,
          'Their projects are served through the coordinator, which costs more. Let this machine reach them by these names, and the database user log in there.',
        ),
    lost.length === 0
      ? well('cluster', 'workers find the tables')
      : wrong(
          'cluster',
          'failure',
          `do not find the tables: ${lost.join(', ')}`,
          'Appends and searches of their projects fail. Run ALTER ROLE … SET search_path = public on the coordinator for the user of the service, which Citus passes on, or reset what was set on the worker.',
        ),
    planners.length === 0
      ? well('cluster', 'workers plan statements as they should')
      : wrong(
          'cluster',
          'warning',
          `other planner settings: ${planners.join(', ')}`,
          'Lists there can take a hundred times as long. Run "annals migrate" as the user of the service. If somebody has set one of these for this user and database, first reset it on the coordinator: ALTER ROLE … IN DATABASE … RESET ….',
        ),
  ]
}

/** Whether the machines of a Citus cluster can connect to each other. Nothing on a single server. */
async function checkMachines(database: Database): Promise<Diagnosis[]> {
  if (!database.distributed) return []
  const shut_out = await findShutOut(database)
  if (shut_out.length === 0) return [well('cluster', 'the machines let each other in')]
  const todo =
    'Start what is down. If all are up, they need passwords, or lines in pg_hba.conf, for the user of the service: docs/scale.md, "Citus", step 3.'
  return [wrong('cluster', 'failure', `do not connect: ${shut_out.join(', ')}`, todo)]
}

/** Compares the connections that a node of so many processes may open with those that the server allows. */
async function checkConnections(database: Database, config: Config, workers: number): Promise<Diagnosis> {
  const [row] = await database.query(READ_CONNECTIONS, [])
  const limits = [row!.user_limit!, row!.database_limit!].map(Number).filter((limit) => limit >= 0)
  const available = Math.min(Number(row!.limit) - Number(row!.reserved), ...limits)
  const ours = workers * connectionsOf(config)
  const node = workers === 1 ? 'a node opens' : `a node of ${workers} workers opens`
  const found = `${node} up to ${ours}; the server has ${available}, of which ${row!.in_use} are in use`
  const todo =
    'Raise max_connections or the limit of the user or database, or lower ANNALS_DATABASE_CONNECTIONS_MAX; all workers and nodes count.'
  if (ours > available) return wrong('connections', 'failure', found, todo)
  if (ours * 2 > available) return wrong('connections', 'warning', `${found}: enough for one node only`, todo)
  return well('connections', `${found}: room for ${Math.floor(available / ours)} nodes`)
}
