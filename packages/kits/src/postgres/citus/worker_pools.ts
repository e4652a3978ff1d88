import { LRUCache } from 'lru-cache'
import type { ClientBase } from 'pg'
import { parseId } from '../../ids.js'
import {
  DatabaseAway,
  type DatabaseOptions,
  type DatabasePool,
  type Parameter,
  type Queryable,
  type Row,
} from '../database.js'
import { sqlStateOf } from '../database_errors.js'
import { NotFulfilled } from '../grouped_reads.js'
import { requestSettings } from '../pool_settings.js'
import type { ConnectionTarget } from '../single_connection.js'
import { isRead, planned, type Statement } from '../statement.js'
import { onShards, type Shards, shardsOf } from './shard_reads.js'
import { CONNECT_MS_MAX, recognize, urlOfWorker } from './workers.js'

/** Row: host and port of the worker that has a project, if it knows where all projects are, and the shard. Parameters: $1 project. */
const FIND_WORKER = planned(
  'find_worker',
  `
SELECT n.nodename AS host, n.nodeport AS port, p.shardid AS shard
FROM pg_dist_placement p JOIN pg_dist_node n ON n.groupid = p.groupid
WHERE p.shardid = get_shard_id_for_distribution_column('session_heads', $1::uuid) AND p.shardstate = 1
  AND n.groupid <> 0 AND n.noderole = 'primary' AND n.isactive AND n.metadatasynced`,
)

const REACHED = planned('worker_reached', 'SELECT 1')

const PROJECTS_MAX = 10_000
/** How long a project's place is cached. If the project has moved, a statement costs one more hop. */
const BELIEVED_MS = 30_000
/** How long the names of shards are believed: those of new tables are not among them. */
const SHARDS_KNOWN_MS = 300_000
const SHARDS_MAX = 1_000
/** Between two attempts to reach a worker. */
const PAUSE_MS = 5_000
/**
 * Answers of a machine that is no longer one of the cluster's: tables or functions are missing there, or Citus does not
 * know where to send what it is asked. Nothing took effect.
 */
const LEFT_CLUSTER = /^(?:0A|3F|42|XX)/

/** Whether one machine carries it out alone. */
function canGoStraight(statement: Statement): boolean {
  return statement.writes || isRead(statement)
}

type WorkerOptions = Pick<
  DatabaseOptions,
  'target' | 'settings' | 'wait_ms_max' | 'probe' | 'commits' | 'renewal' | 'onConnect'
>

interface Worker {
  readonly address: string
  readonly pool: DatabasePool
  isReached: boolean
  next_attempt_at: number
  /** It was said that it cannot be reached. */
  isTold: boolean
}

/** Where a project is: none while that is looked for, or if the worker is not to be reached; its shards as soon as they are known. */
interface Place {
  worker?: Worker
  shards?: Shards
}

/**
 * A pool whose reads and stored functions, if they name a project first, go straight to the worker that has it. The way
 * through the coordinator costs as much again as one PostgreSQL takes for a whole flush, or for several reads. Each worker
 * knows where all projects are, and passes on what is another one's, so an old choice is slow, never wrong.
 *
 * @param open opens a pool with these options
 * @param onDetour called once when a worker cannot be reached, whose projects then go through the coordinator
 */
export function straightToWorkers(
  coordinator: DatabasePool,
  target: ConnectionTarget,
  open: (options: WorkerOptions) => DatabasePool,
  onDetour: (worker: string, error: unknown) => void,
): DatabasePool {
  // A pooler is there to limit connections, and leads to one machine.
  if (!('connectionString' in target) || !target.distributed || target.pooled) return coordinator
  const { connectionString } = target
  const openWorker: OpenWorker = (host, port, onConnect) =>
    open({
      target: {
        ...target,
        connectionString: urlOfWorker(connectionString, host, port),
        hosts: undefined,
      },
      // Within a function on its worker, what need not know its shard is planned once.
      settings: { ...requestSettings(target), plan_cache_mode: 'auto' },
      wait_ms_max: CONNECT_MS_MAX,
      // They would ask the coordinator.
      probe: undefined,
      commits: undefined,
      // A worker that can only be read says nothing of the others.
      renewal: undefined,
      onConnect,
    })
  return new WorkerPools(coordinator, openWorker, onDetour)
}

type OpenWorker = (
  host: string,
  port: string,
  onConnect: (client: ClientBase) => Promise<void>,
) => DatabasePool

const NOWHERE: Place = {}

class WorkerPools implements DatabasePool {
  readonly distributed = true
  private readonly workers = new Map<string, Worker>()
  private readonly places = new LRUCache<string, Place>({ max: PROJECTS_MAX, ttl: BELIEVED_MS })
  /** By the shard of session_heads. */
  private readonly shards = new LRUCache<string, Shards>({ max: SHARDS_MAX, ttl: SHARDS_KNOWN_MS })
  /** The address of the worker that had a project when that was last known. */
  private readonly addresses = new LRUCache<string, string>({ max: PROJECTS_MAX })

  constructor(
    private readonly coordinator: DatabasePool,
    private readonly openWorker: OpenWorker,
    private readonly onDetour: (worker: string, error: unknown) => void,
  ) {}

  get objects() {
    return this.coordinator.objects
  }

  async query(
    statement: Statement,
    parameters: readonly Parameter[],
    onSending?: () => void,
  ): Promise<Row[]> {
    const project_id = canGoStraight(statement) ? parseId(String(parameters[0])) : undefined
    if (project_id === undefined) return this.coordinator.query(statement, parameters, onSending)
    const { worker, shards } = this.placeOf(project_id)
    if (!worker?.isReached) return this.coordinator.query(statement, parameters, onSending)
    let isSent = false
    const sending = () => {
      onSending?.()
      isSent = true
    }
    try {
      return await worker.pool.query(
        (shards && onShards(statement, shards)) ?? statement,
        parameters,
        sending,
      )
    } catch (error) {
      this.places.delete(project_id)
      if (error instanceof DatabaseAway) {
        // One that hangs must not hold what comes next.
        worker.isReached = false
        if (isSent) throw error
        this.detour(worker, error)
      } else if (!(error instanceof NotFulfilled || LEFT_CLUSTER.test(sqlStateOf(error) ?? ''))) throw error
      return this.coordinator.query(statement, parameters, onSending)
    }
  }

  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.coordinator.transaction(work)
  }

  snapshot<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.coordinator.snapshot(work)
  }

  async close(): Promise<void> {
    await Promise.all(this.pools().map((pool) => pool.close()))
  }

  renew(): void {
    for (const pool of this.pools()) pool.renew()
  }

  get stalls(): boolean {
    return this.coordinator.stalls
  }

  machineOf(project_id: string): string | undefined {
    return this.addresses.get(project_id)
  }

  usage() {
    const sum = { total: 0, idle: 0, waiting: 0 }
    for (const pool of this.pools()) {
      const { total, idle, waiting } = pool.usage()
      sum.total += total
      sum.idle += idle
      sum.waiting += waiting
    }
    return sum
  }

  private pools(): DatabasePool[] {
    return [this.coordinator, ...Array.from(this.workers.values(), ({ pool }) => pool)]
  }

  /** Where a project is, as far as is known. Nobody waits for its worker to be found or reached. */
  private placeOf(project_id: string): Place {
    const place = this.places.get(project_id)
    if (!place) void this.find(project_id)
    else if (place.worker && !place.worker.isReached) void this.reach(place.worker)
    return place ?? NOWHERE
  }

  private async find(project_id: string): Promise<void> {
    const place: Place = {}
    this.places.set(project_id, place)
    // Without an answer it goes through the coordinator until it is looked for again.
    const [row] = await this.coordinator.query(FIND_WORKER, [project_id]).catch(() => [])
    if (!row) return
    place.worker = this.workerAt(row.host!, row.port!)
    this.addresses.set(project_id, place.worker.address)
    const id = row.shard!
    const shards =
      this.shards.get(id) ?? (await shardsOf(this.coordinator, project_id, id).catch(() => undefined))
    if (!shards) return
    this.shards.set(id, shards)
    place.shards = shards
  }

  private workerAt(host: string, port: string): Worker {
    const address = `${host}:${port}`
    const known = this.workers.get(address)
    if (known) return known
    const pool = this.openWorker(host, port, recognize(this.coordinator, host, port))
    const worker = { address, pool, isReached: false, next_attempt_at: 0, isTold: false }
    this.workers.set(address, worker)
    return worker
  }

  private async reach(worker: Worker): Promise<void> {
    const now = performance.now()
    if (now < worker.next_attempt_at) return
    worker.next_attempt_at = now + PAUSE_MS
    try {
      await worker.pool.query(REACHED, [])
      worker.isReached = true
      worker.next_attempt_at = 0
      worker.isTold = false
    } catch (error) {
      this.detour(worker, error)
    }
  }

  private detour(worker: Worker, error: unknown): void {
    worker.next_attempt_at = performance.now() + PAUSE_MS
    if (!worker.isTold) this.onDetour(worker.address, error)
    worker.isTold = true
  }
}
