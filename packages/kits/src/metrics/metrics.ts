import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type Metric,
  type MetricConfiguration,
  Registry,
} from 'prom-client'
import type { Changes, ConsumerLoad } from '../changes/changes.js'
import type { MemoryBudget } from '../fairness/fair_queue.js'
import type { DatabasePool, SharedPool } from '../postgres/database.js'
import { sqlStateOf } from '../postgres/database_errors.js'
import { planned } from '../postgres/statement.js'
import { VERSION } from '../version.js'

const NAME = 'annals_http_request_duration_seconds'
const HELP = 'Requests by route, method and status.'

/**
 * How long requests took, as one histogram for each route, method and status: a single one with these labels would write
 * and look up their text at each call, which costs ten times as much as counting.
 */
export class RequestSeconds {
  readonly name = NAME
  private readonly series = new Map<string, Map<string, Map<number, Histogram>>>()

  constructor(
    registry: Registry,
    private readonly buckets: number[],
  ) {
    registry.registerMetric(this as unknown as Metric)
  }

  of(route: string, method: string, status: number): Histogram {
    return this.series.get(route)?.get(method)?.get(status) ?? this.add(route, method, status)
  }

  private add(route: string, method: string, status: number): Histogram {
    const ofRoute = this.series.get(route) ?? new Map<string, Map<number, Histogram>>()
    const ofMethod = ofRoute.get(method) ?? new Map<number, Histogram>()
    const histogram = new Histogram({ name: NAME, help: HELP, buckets: this.buckets, registers: [] })
    this.series.set(route, ofRoute.set(method, ofMethod.set(status, histogram)))
    return histogram
  }

  async get() {
    const values = []
    for (const [route, ofRoute] of this.series)
      for (const [method, ofMethod] of ofRoute)
        for (const [status, histogram] of ofMethod)
          for (const value of (await histogram.get()).values)
            values.push({ ...value, labels: { ...value.labels, route, method, status: String(status) } })
    return { name: NAME, help: HELP, type: 'histogram', aggregator: 'sum', values }
  }
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const ENTRIES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]

export interface MetricSources {
  memory: Pick<MemoryBudget, 'taken' | 'places_max' | 'counts'>
  /** The connection pools by name; `reserved` also tells whether the database answers. */
  pools: {
    requests: Pick<SharedPool, 'usage'>
    appends: Pick<SharedPool, 'usage'>
    reserved: Pick<DatabasePool, 'usage' | 'query' | 'renew' | 'stalls'>
    changes: Pick<DatabasePool, 'usage'>
  }
}

const PING = planned('metrics_ping', "SELECT current_setting('transaction_read_only') AS read_only")

/**
 * Counters for operators: one registry per process. Labels are routes and names of errors and statements, which are
 * few; no id and no tenant becomes a series.
 */
export class Metrics {
  readonly registry = new Registry()
  private readonly requests = new RequestSeconds(this.registry, SECONDS)
  private readonly errors = this.counter('annals_errors_total', 'Failed requests, by name of the error.', [
    'error',
  ])
  private readonly refusals = this.counter(
    'annals_requests_shed_total',
    'Requests refused unread with 503 overloaded, because the process was overloaded. Not counted elsewhere.',
  )
  private readonly flushEntries = this.histogram(
    'annals_flush_entries',
    'Entries stored together in one commit.',
    ENTRIES,
  )
  private readonly flushSeconds = this.histogram(
    'annals_flush_duration_seconds',
    'From the start of a flush to the answer to its commit, including retries.',
    SECONDS,
  )
  private readonly flushWait = this.histogram(
    'annals_flush_wait_seconds',
    'How long the oldest append of a flush waited for its start.',
    SECONDS,
  )
  private readonly troubles = this.counter(
    'annals_flush_troubles_total',
    'What went wrong in flushes: away and collided are retried, split is stored in halves, unavailable and in_doubt are given up.',
    ['trouble'],
  )
  private readonly failures = this.counter(
    'annals_statement_errors_total',
    'Failed statements, by name and SQLSTATE.',
    ['statement', 'sqlstate'],
  )
  private readonly lostLines = this.counter(
    'annals_log_lines_lost_total',
    'Log lines that could not be written, because the disk was full or nobody read them.',
  )

  constructor() {
    collectDefaultMetrics({ register: this.registry })
    new Gauge({
      name: 'annals_build_info',
      help: 'The versions of Annals and Node.',
      labelNames: ['version', 'node'],
      aggregator: 'first',
      registers: [this.registry],
    }).set({ version: VERSION, node: process.versions.node }, 1)
  }

  watchLog(
    appends: { load(): { requests: number; bytes: number; flushes: number } },
    tails: { load(): { subscriptions: number } },
  ): void {
    const { gauge } = readMetrics(this.registry)
    gauge('annals_append_queue_requests', 'Appends waiting for a commit.', () => appends.load().requests)
    gauge('annals_append_queue_bytes', 'Bytes of appends waiting for a commit.', () => appends.load().bytes)
    gauge('annals_append_flushes', 'Commits of appends in flight.', () => appends.load().flushes)
    gauge('annals_tails', 'Open live tails.', () => tails.load().subscriptions)
  }

  watchEmbeddings(embeddings: { readonly skipped: number }): void {
    const { counter } = readMetrics(this.registry)
    counter(
      'annals_embeddings_skipped_total',
      'Entries without a vector, because the model answers others but fails at these.',
      () => embeddings.skipped,
    )
  }

  watch({ memory, pools }: MetricSources): void {
    const { gauge, counter } = readMetrics(this.registry)
    const { counts } = memory
    gauge(
      'annals_memory_bytes',
      'Bytes of the memory budget in use by connections and requests.',
      () => memory.taken,
    )
    gauge('annals_memory_bytes_max', 'Bytes of the memory budget.', () => memory.places_max)
    counter('annals_memory_waits_total', 'Requests that waited for memory.', () => counts.waits)
    counter(
      'annals_memory_refusals_total',
      'Requests refused because no memory was free.',
      () => counts.refusals,
    )
    this.watchPools(pools)
  }

  private watchPools({ reserved, changes, ...shared }: MetricSources['pools']): void {
    const { gauge, counter } = readMetrics(this.registry, 'pool')
    const all = { requests: shared.requests, appends: shared.appends, reserved, changes }
    const ofPools = (field: 'total' | 'idle' | 'waiting') => () =>
      Object.entries(all).map(([pool, of]) => [pool, of.usage()[field]] as const)
    const ofShares = (field: 'waits' | 'refusals') => () =>
      Object.entries(shared).map(([pool, of]) => [pool, of.usage()[field]] as const)
    gauge('annals_database_connections', 'Connections open.', ofPools('total'))
    gauge('annals_database_connections_idle', 'Of these, idle.', ofPools('idle'))
    gauge('annals_database_waiting', 'Statements waiting for a connection.', ofPools('waiting'))
    counter(
      'annals_database_waits_total',
      'Statements and transactions that waited for a connection of their share.',
      ofShares('waits'),
    )
    counter(
      'annals_database_refusals_total',
      'Statements and transactions that got no connection, after waiting or for lack of room to wait.',
      ofShares('refusals'),
    )
    const ask = (name: string, help: string, isWell: (read_only: boolean) => boolean) =>
      new Gauge({
        name,
        help,
        aggregator: 'min',
        registers: [this.registry],
        async collect() {
          const rows = await reserved.query(PING, []).catch(() => [])
          this.set(rows.some((row) => isWell(row.read_only === 'on')) ? 1 : 0)
        },
      })
    ask('annals_database_up', 'Whether the database answers: 1 or 0.', () => true)
    ask('annals_database_writable', 'Whether it can be written: 1 or 0.', (read_only) => {
      if (read_only) reserved.renew()
      return !read_only && !reserved.stalls
    })
  }

  /** Counts an answered request. `route` is a pattern, never a path: each id would become a series. */
  answered(route: string, method: string, status: number, ms: number): void {
    this.requests.of(route, method, status).observe(ms / 1000)
  }

  failed(error: string): void {
    this.errors.inc({ error })
  }

  shed(requests: number): void {
    this.refusals.inc(requests)
  }

  flushed({ entries, wait_ms, ms }: { entries: number; wait_ms: number; ms: number }): void {
    this.flushEntries.observe(entries)
    this.flushWait.observe(wait_ms / 1000)
    this.flushSeconds.observe(ms / 1000)
  }

  flushTroubled(trouble: string): void {
    this.troubles.inc({ trouble })
  }

  statementFailed(error: unknown): void {
    const { statement = 'none', cause } = error as { statement?: string; cause?: unknown }
    this.failures.inc({ statement, sqlstate: sqlStateOf(cause ?? error) ?? 'none' })
  }

  logLinesLost(lines: number): void {
    this.lostLines.inc(lines)
  }

  private histogram(name: string, help: string, buckets: number[]) {
    return new Histogram({ name, help, buckets, registers: [this.registry] })
  }

  private counter<L extends string>(name: string, help: string, labelNames: L[] = []) {
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }
}

/** Shows by consumer how far those are that look at changed sessions. */
export function watchChanges(registry: Registry, changes: Pick<Changes, 'load'>): void {
  // Each process has looked at the same database.
  const { gauge } = readMetrics(registry, 'consumer', 'max')
  const { counter } = readMetrics(registry, 'consumer')
  const read = (field: keyof ConsumerLoad) => () =>
    [...changes.load()].map(([consumer, load]) => [consumer, load[field]] as const)
  gauge(
    'annals_changes_waiting',
    'Changed sessions, of all projects, that the consumer has not seen.',
    read('waiting'),
  )
  gauge('annals_changes_lag_seconds', 'How long the first of these has waited.', read('lag_s'))
  counter('annals_changes_consumed_total', 'Changed sessions that the consumer has seen.', read('consumed'))
  counter('annals_changes_failures_total', 'Times that the consumer failed.', read('failures'))
}

type Read = () => number | Iterable<readonly [label: string, value: number]>

/**
 * Makes metrics that are read when somebody asks for them: a number, or one for each value of `label`.
 * `aggregator`: how the workers' values become one; by default their sum.
 */
function readMetrics(
  registry: Registry,
  label?: string,
  aggregator: MetricConfiguration<string>['aggregator'] = 'sum',
) {
  const make = (Kind: typeof Counter | typeof Gauge) => (name: string, help: string, read: Read) => {
    const labelNames = label === undefined ? [] : [label]
    new Kind({
      ...{ name, help, labelNames, aggregator, registers: [registry] },
      collect(this: Counter | Gauge) {
        const values = read()
        this.reset()
        if (typeof values === 'number') this.inc(values)
        else for (const [labelled, value] of values) this.inc({ [label!]: labelled }, value)
      },
    })
  }
  return { gauge: make(Gauge), counter: make(Counter) }
}
