import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { OwnWorld } from '../world/world.ts'
import { type Fault, lull } from './fault.ts'

/** A database that refuses: no connection free, no space left, timeouts, read-only. */
export const PRESSURE_FAULTS: Fault[] = [
  {
    kind: 'out of connections',
    times: 10,
    strike: async (world, random) => {
      const hogs: pg.Client[] = []
      try {
        await takeAllConnections(world, hogs)
        const from = performance.now()
        await lull(random, 1_000, 2_500)
        return { nodes: world.nodes, away: { from, to: performance.now() }, returned_at: await letGo(hogs) }
      } finally {
        await letGo(hogs)
      }
    },
  },
  {
    kind: 'statement_timeout hit',
    times: 10,
    strike: (world) => whileHeadsAreHeld(world, 2_800, /due to statement timeout/),
  },
  {
    kind: 'lock_timeout hit',
    times: 10,
    strike: async (world, random) => {
      await setForAll(world, 'lock_timeout', `'${random.integer(20, 200)}ms'`)
      const struck = await whileHeadsAreHeld(world, random.integer(500, 1_000), /due to lock timeout/)
      await setForAll(world, 'lock_timeout')
      return { ...struck, returned_at: performance.now() }
    },
  },
  { kind: 'deadlock', times: 10, strike: provokeDeadlock },
  {
    kind: 'disk full',
    times: 10,
    reasonAgainst: ({ disk }) => (disk ? undefined : 'a small disk can only be mounted by root, on Linux'),
    strike: async ({ disk, postgres, nodes }, random) => {
      const behind = postgres.endOfLog()
      await disk!.fill(random.integer(0, 300_000))
      await lull(random, 1_000, 2_500)
      await disk!.makeRoom()
      // Without space for its log it panics; then it recovers by itself, or has ended and is restarted.
      const returned_at = await postgres.start()
      return { nodes, returned_at, missed: postgres.logged(/No space left on device/, behind) === 0 }
    },
  },
  {
    kind: 'read-only',
    times: 10,
    strike: async (world, random) => {
      const behind = world.postgres.endOfLog()
      await setForAll(world, 'default_transaction_read_only', 'on')
      await lull(random, 500, 1_500)
      await setForAll(world, 'default_transaction_read_only')
      const missed = world.postgres.logged(/in a read-only transaction/, behind) === 0
      return { nodes: world.nodes, returned_at: performance.now(), missed }
    },
  },
]

async function setForAll({ postgres }: OwnWorld, name: string, value?: string): Promise<void> {
  await postgres.ask(
    value === undefined ? `ALTER SYSTEM RESET ${name}` : `ALTER SYSTEM SET ${name} = ${value}`,
  )
  await postgres.ask('SELECT pg_reload_conf()')
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Terminates the nodes' connections until another client holds all of them. */
async function takeAllConnections({ postgres }: OwnWorld, hogs: pg.Client[]): Promise<void> {
  const url = `postgresql://hog@127.0.0.1:${postgres.port}/annals`
  for (let left = 1; left > 0; ) {
    for (;;) {
      const hog = await connect(url).catch(() => undefined)
      if (!hog) break
      hogs.push(hog)
    }
    const rows = await postgres.ask(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'annals'",
    )
    left = rows.length
  }
}

async function letGo(hogs: pg.Client[]): Promise<number> {
  await Promise.all(hogs.splice(0).map((hog) => hog.end().catch(() => {})))
  return performance.now()
}

/** Blocks writes to all logs for a while, by holding the locks that an append needs. */
async function whileHeadsAreHeld({ postgres, nodes }: OwnWorld, ms: number, logged: RegExp) {
  const behind = postgres.endOfLog()
  const holder = await connect(postgres.superuserUrl())
  try {
    await holder.query('BEGIN')
    await holder.query('SET LOCAL lock_timeout = 0')
    await holder.query('SELECT session_id FROM session_heads ORDER BY session_id FOR UPDATE')
    await sleep(ms)
    await holder.query('ROLLBACK')
  } finally {
    await holder.end()
  }
  return { nodes, returned_at: performance.now(), missed: postgres.logged(logged, behind) === 0 }
}

/**
 * Takes the locks of a flush in the opposite order: first a high session, and, when a flush waits for that, all the
 * others, some of which that flush holds. PostgreSQL aborts the one that has waited longer: the flush.
 */
async function provokeDeadlock({ postgres, nodes, sessions }: OwnWorld) {
  const behind = postgres.endOfLog()
  const holder = await connect(postgres.superuserUrl())
  const inUse = sessions.slice(-24).map(({ session_id }) => session_id)
  const lock = (ids: string[]) =>
    holder.query(
      'SELECT session_id FROM session_heads WHERE session_id = ANY ($1) ORDER BY session_id FOR UPDATE',
      [ids],
    )
  try {
    await holder.query("SET deadlock_timeout = '30s'")
    await holder.query('BEGIN')
    await lock(inUse.toSorted().slice(-1))
    // While all of them are locked, appends accumulate, so that the next flush has many sessions.
    await holder.query('SAVEPOINT before_all')
    await lock(inUse)
    await sleep(500)
    await holder.query('ROLLBACK TO before_all')
    await sleep(300)
    await lock(inUse)
    await holder.query('ROLLBACK')
  } finally {
    await holder.end()
  }
  return { nodes, returned_at: performance.now(), missed: postgres.logged(/deadlock detected/, behind) === 0 }
}
