import { setTimeout as sleep } from 'node:timers/promises'
import { AnnalsError } from '../errors.js'
import { type Background, each, Loop, pausesForRequests } from '../lifecycle/background.js'
import type { Database, Tenant } from '../postgres/database.js'
import { describeError } from '../postgres/database_errors.js'
import { carryOut } from './carry_out.js'
import { FIND_MARKS } from './change_queries.js'
import type { Consumer } from './consumer.js'
import { FIND_SCANS, HAS_CONSUMERS } from './project_consumer_queries.js'
import { retire, scanSome, useConsumer } from './project_consumers.js'

const ROUNDS_MAX = 2
/** Of consumers that ask somebody outside. */
const ASKING_ROUNDS_MAX = 4
/** A session that is written all the time is looked at no more often: so long lies between two rounds of a project. */
const ROUND_MS = 1_000
const POLL_MS = 10_000
const PAUSE_MS_MIN = 5
const PREPARE_MS_MAX = 2_000
const PREPARE_POLL_MS = 50
/** How long a consumer that was ready is taken for ready. */
const READY_MS = 60_000
/** How long rounds under way may take to end by themselves when the service stops. */
const STOP_MS_MAX = 1_000

export interface ChangesOptions extends Omit<Background, 'signal'> {
  /** Cuts off the connections. */
  abort: AbortController
  consumers: readonly Consumer[]
  /** How long a node may send statements that write no marks after a consumer was switched on, and these may take, in seconds. */
  settle_s: number
  poll_ms?: number
  round_ms?: number
  ready_ms?: number
  lease_s?: number
}

export interface ConsumerLoad {
  waiting: number
  lag_s: number
  consumed: number
  failures: number
}

interface Task {
  project_id: string
  consumer: Consumer
}

/**
 * Runs the consumers of changes at one node. Any number of nodes may: a session belongs to the node that leased it.
 *
 *   a write at this node, or the poll ──▶ waiting until its time ──▶ a round ──▶ waiting again while there is more
 *
 * A round takes up a bounded number of a project's marks; projects take turns, two rounds at a time, and a round is
 * followed by a pause as long as itself, so that this node takes no more than one of the database's processors. Where
 * requests keep the event loop busy, the pause is four times as long. What this node does not know of, since another
 * has written it and is gone, the poll finds.
 */
export class Changes {
  private readonly rounds: Loop<Task>
  private readonly asking: Loop<Task>
  /** Consumers that were ready, and performance.now() until which they are taken for it. */
  private readonly ready = new Map<string, number>()
  /** Whose sessions are to be looked through, also while there always are some that have changed. */
  private readonly scans = new Set<string>()
  private readonly byName: ReadonlyMap<string, Consumer>
  private readonly loads: ReadonlyMap<string, ConsumerLoad>
  private readonly pauseAfter = pausesForRequests()
  private stopping: Promise<void> | undefined

  constructor(private readonly options: ChangesOptions) {
    const { consumers } = options
    this.byName = new Map(consumers.map((consumer) => [consumer.name, consumer]))
    const none = () => ({ waiting: 0, lag_s: 0, consumed: 0, failures: 0 })
    this.loads = new Map(consumers.map(({ name }) => [name, none()]))
    const { abort, logger, poll_ms = POLL_MS } = options
    const loop = {
      signal: abort.signal,
      logger,
      failure: 'changes could not be looked for; will try again',
      poll_ms,
      run: (task: Task) => this.round(task),
    }
    this.rounds = new Loop<Task>({
      ...loop,
      poll: () => this.poll(),
      first_ms: 0,
      running_max: ROUNDS_MAX,
    })
    this.asking = new Loop<Task>({ ...loop, poll: async () => {}, running_max: ASKING_ROUNDS_MAX })
  }

  /** Something in a project that has consumers may have changed. */
  touched(project_id: string): void {
    for (const consumer of this.options.consumers) this.plan(project_id, consumer, this.roundMs)
  }

  /** A caller waits until a consumer has seen the latest changes. */
  hurry(project_id: string, name: string): void {
    this.plan(project_id, this.byName.get(name)!, 0)
  }

  /** How many consumers of projects it takes for ready. */
  get readyConsumers(): number {
    return this.ready.size
  }

  load(): ReadonlyMap<string, Readonly<ConsumerLoad>> {
    return this.loads
  }

  /**
   * Sees to it that a consumer has seen all that there was when it was first asked for, which switches it on.
   * @throws AnnalsError being_prepared where that takes longer
   */
  async prepare(tenant: Tenant<Database>, name: string): Promise<void> {
    const { project_id } = tenant
    const key = keyOf(project_id, name)
    const until = performance.now() + PREPARE_MS_MAX
    if (until < (this.ready.get(key) ?? 0)) return
    this.ready.delete(key)
    for (;;) {
      const { is_ready, sessions_scanned } = await useConsumer(tenant, name)
      const now = performance.now()
      if (is_ready) {
        this.ready.set(key, now + (this.options.ready_ms ?? READY_MS))
        return
      }
      this.scans.add(key)
      this.plan(project_id, this.byName.get(name)!, 0)
      if (now > until || this.stopping) throw beingPrepared(sessions_scanned)
      await sleep(PREPARE_POLL_MS)
    }
  }

  /** Takes up nothing more; gives rounds under way a moment, then cuts them off and hands back what they had. Idempotent. */
  stop(): Promise<void> {
    this.stopping ??= this.end()
    return this.stopping
  }

  private async end(): Promise<void> {
    const { abort } = this.options
    const timer = setTimeout(() => abort.abort(), STOP_MS_MAX)
    const loops = [this.rounds, this.asking]
    await Promise.all(loops.map((loop) => loop.stop()))
    clearTimeout(timer)
    abort.abort()
    await Promise.all(loops.map((loop) => loop.ended()))
  }

  private get roundMs(): number {
    return this.options.round_ms ?? ROUND_MS
  }

  private plan(project_id: string, consumer: Consumer, wait_ms: number): void {
    const loop = consumer.restMs ? this.asking : this.rounds
    loop.plan(keyOf(project_id, consumer.name), { project_id, consumer }, wait_ms)
  }

  private async round({ project_id, consumer }: Task): Promise<void> {
    const { database, abort, settle_s, logger, lease_s } = this.options
    const { signal } = abort
    // The poll finds it again.
    if (consumer.restMs && consumer.restMs() > 0) return
    const key = keyOf(project_id, consumer.name)
    const load = this.loads.get(consumer.name)!
    const began = performance.now()
    const onFailure = (error: unknown) => {
      load.failures += 1
      logger.warn({ err: describeError(error), project_id, consumer: consumer.name }, 'a consumer failed')
    }
    try {
      const job = { database, consumer, project_id, signal, onFailure, ...(lease_s && { lease_s }) }
      const { sessions, left, is_cut } = await carryOut(job)
      load.consumed += sessions - left
      const isFull = is_cut || (sessions === consumer.sessions_max && left === 0)
      let wait_ms = isFull ? 0 : sessions > 0 ? this.roundMs : Number.POSITIVE_INFINITY
      if (sessions === 0 || (this.scans.has(key) && !isFull)) {
        const scan_ms = await scanSome({ database, project_id }, consumer, settle_s)
        if (scan_ms > 0) this.scans.delete(key)
        wait_ms = Math.min(wait_ms, scan_ms)
      }
      // The database has its rest while others are asked.
      const pause_ms = consumer.restMs ? 0 : this.pauseAfter(performance.now() - began)
      if (wait_ms < Number.POSITIVE_INFINITY)
        this.plan(project_id, consumer, Math.max(wait_ms, pause_ms, PAUSE_MS_MIN))
    } catch (error) {
      if (!signal.aborted) onFailure(error)
    }
  }

  /** Finds what there is to do that nobody has told this node of, and forgets who was ready long ago. */
  private async poll(): Promise<void> {
    const now = performance.now()
    for (const [key, until] of this.ready) if (until < now) this.ready.delete(key)
    if ((await this.options.database.query(HAS_CONSUMERS, [])).length > 0) await this.look()
  }

  private async look(): Promise<void> {
    const { database, abort, consumers } = this.options
    const found = new Map(consumers.map(({ name }) => [name, { waiting: 0, lag_s: 0 }]))
    for (const row of await database.query(FIND_MARKS, [])) {
      const consumer = this.byName.get(row.consumer!)
      const load = found.get(row.consumer!)
      // Of a version that has consumers which this one does not know.
      if (!consumer || !load) continue
      load.waiting += Number(row.sessions)
      load.lag_s = Math.max(load.lag_s, Number(row.age_s))
      if (row.due !== '0') this.plan(row.project_id!, consumer, 0)
    }
    for (const [name, load] of found) Object.assign(this.loads.get(name)!, load)
    await each(await database.query(FIND_SCANS, []), abort.signal, async (row) => {
      const consumer = this.byName.get(row.consumer!)
      if (!consumer) return
      const project_id = row.project_id!
      if (row.retires === 't') return retire({ database, project_id }, consumer, abort.signal)
      this.scans.add(keyOf(project_id, consumer.name))
      this.plan(project_id, consumer, 0)
    })
  }
}

function keyOf(project_id: string, consumer: string): string {
  return `${project_id} ${consumer}`
}

function beingPrepared(sessions: number): AnnalsError {
  return new AnnalsError(
    'being_prepared',
    `Sorting by last activity is being built for this project. ${sessions.toLocaleString('en')} sessions are done; retry shortly.`,
  )
}
