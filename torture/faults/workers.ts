import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'
import type { Tenant } from '../clients/surroundings.ts'
import type { Worker } from '../world/cluster.ts'
import { type ClusterWorld, newTenant } from '../world/world.ts'
import { callEveryOperation } from './every_operation.ts'
import { type Fault, lull, type Struck } from './fault.ts'

/** Workers of a cluster that fail under load, and projects that move from one to another. */
export const WORKER_FAULTS: Fault<ClusterWorld>[] = [
  {
    kind: 'worker killed',
    kills: 1,
    times: 20,
    strike: async (world, random) => {
      const worker = random.pick(world.postgres.workers)
      await worker.kill()
      await lull(random, 0, 1_500)
      return back(world, await worker.start())
    },
  },
  { kind: 'others are served', kills: 1, times: 4, strike: serveOthers },
  {
    kind: 'worker paused for 5 s',
    times: 5,
    strike: async (world, random) => {
      const worker = random.pick(world.postgres.workers)
      await worker.signalAll('SIGSTOP')
      await sleep(5_000)
      await worker.signalAll('SIGCONT')
      return back(world, performance.now())
    },
  },
  {
    kind: 'connections to a worker cut',
    times: 10,
    strike: async (world, random) => {
      const cut = await random
        .pick(world.postgres.workers)
        .ask(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'citus_internal%' OR application_name = 'annals'",
        )
      return { ...back(world, performance.now()), missed: cut.length === 0 }
    },
  },
  { kind: 'transaction left prepared', times: 5, strike: leavePrepared },
  { kind: 'project moved', times: 5, strike: moveProject },
]

function back({ nodes }: ClusterWorld, returned_at: number): Struck {
  return { returned_at, nodes }
}

let count = 0

/** Projects that are written to while the worker of about half of them is down: far more than a node has slots for flushes. */
const CROWD = 24
const PREPARED_MS_MAX = 10_000
const crowd: Tenant[] = []

/** With one worker down, every operation of a project on another one works. */
async function serveOthers(world: ClusterWorld): Promise<Struck> {
  const { url } = world.nodes[0]
  const newProject = (name: string, search?: boolean) =>
    retried(() => newTenant(world, `${name}-${count++}`, search))
  const tenant = await newProject('other', true)
  while (crowd.length < CROWD) crowd.push(await newProject('crowd'))
  // What a project does for the first time may be noted with the project, which all workers have.
  await retried(() => callEveryOperation(url, tenant.token))
  const port = await world.postgres.portOf(tenant.project_id)
  const worker = world.postgres.workers.find((one) => one.port !== port) as Worker
  await worker.kill()
  const over = new AbortController()
  const writing = crowd.map(({ token }) => writeToNothing(url, token, over.signal))
  const outcome = await callEveryOperation(url, tenant.token).then(
    (overloaded) => (overloaded > 0 ? { note: `${overloaded} times refused as overloaded` } : {}),
    (error: Error) => ({ problem: `with another worker down: ${error.stack}` }),
  )
  over.abort()
  await Promise.all(writing)
  return { ...back(world, await worker.start()), ...outcome }
}

/**
 * The coordinator's connections to a worker that the fault before this one restarted fail once each: a request that needs
 * them gets 503.
 */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PREPARED_MS_MAX
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await sleep(100)
    }
  }
}

/** Appends to sessions that do not exist, as often as it is answered. */
async function writeToNothing(url: string, token: string, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ type: 'note', data: {} })
    await fetch(`${url}/api/v1/session/${randomUUID()}/events`, { method: 'POST', headers, body })
      .then((answer) => answer.arrayBuffer())
      .catch(() => {})
    await sleep(20)
  }
}

/** As a coordinator leaves it that dies between the two phases of a commit: Citus ends it after `citus.recover_2pc_interval`. */
async function leavePrepared(world: ClusterWorld, random: Random): Promise<Struck> {
  const { postgres } = world
  const worker = random.pick(postgres.workers)
  const heads = await postgres.ask<{ name: string }>(
    "SELECT s.shard_name AS name FROM citus_shards s WHERE s.table_name = 'session_heads'::regclass AND s.nodeport = $1",
    [worker.port],
  )
  const locks = heads.map(({ name }) => `SELECT FROM ${name} ORDER BY session_id FOR UPDATE;`).join('')
  await worker.ask(`BEGIN; ${locks} PREPARE TRANSACTION 'citus_0_${process.pid}_${2 ** 40 + count++}_1'`)
  while ((await worker.ask('SELECT FROM pg_prepared_xacts WHERE database = current_database()')).length > 0)
    await sleep(100)
  return back(world, performance.now())
}

/** The shard of a project that is written to, with all that lies beside it. */
async function moveProject(world: ClusterWorld, random: Random): Promise<Struck> {
  const { postgres, sessions } = world
  const { project_id } = random.pick(sessions.slice(-24)).tenant
  const from = await postgres.portOf(project_id)
  const to = random.pick(postgres.workers.filter(({ port }) => port !== from)).port
  await postgres.ask(
    `SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, $3::citus.shard_transfer_mode)
     FROM citus_shards s, pg_dist_node n
     WHERE s.shardid = get_shard_id_for_distribution_column('users', $1::uuid) AND n.nodeport = $2`,
    [project_id, to, random.pick(['force_logical', 'block_writes'])],
  )
  const problem = (await postgres.portOf(project_id)) === to ? undefined : 'the project did not move'
  return { ...back(world, performance.now()), ...(problem && { problem }) }
}
