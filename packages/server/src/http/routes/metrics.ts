import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { VERSION } from '../../version.js'
import type { AppParts, AppServer } from '../app_parts.js'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Prometheus metrics: requests by route, the appender's queue, connections, tails, the process. */
export function metricsRoutes(app: AppServer, { appender, database, feed, worker }: AppParts): void {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Histogram({
    name: 'annals_http_request_duration_seconds',
    help: 'Requests by route, method and status.',
    labelNames: ['route', 'method', 'status'],
    buckets: SECONDS,
    registers: [registry],
  })
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  gauge('annals_append_queue_requests', 'Appends that wait for a commit.', () => appender.load().requests)
  gauge('annals_append_queue_bytes', 'Bytes of appends that wait for a commit.', () => appender.load().bytes)
  gauge('annals_append_flushes', 'Commits of appends in flight.', () => appender.load().flushes)
  gauge('annals_database_connections', 'Connections open for reads.', () => database.usage().total)
  gauge('annals_database_connections_idle', 'Of these, idle.', () => database.usage().idle)
  gauge('annals_database_waiting', 'Requests that wait for a connection.', () => database.usage().waiting)
  gauge('annals_tails', 'Live tails that are open.', () => feed.load().subscriptions)
  const build = new Gauge({
    name: 'annals_build_info',
    help: 'The version.',
    aggregator: 'first',
    labelNames: ['version'],
    registers: [registry],
  })
  build.set({ version: VERSION }, 1)

  // Kept by one string, since looking labels up costs more than counting.
  const series = new Map<string, { observe(seconds: number): void }>()
  const seriesOf = (route: string, method: string, status: number) => {
    const name = `${method} ${route} ${status}`
    const known = series.get(name) ?? requests.labels(route, method, String(status))
    series.set(name, known)
    return known
  }
  app.addHook('onResponse', (request, reply, done) => {
    // The route's pattern, never its path: ids would make a series each, and must not leave by this door.
    const route = request.routeOptions.url ?? 'unknown'
    seriesOf(route, request.method, reply.statusCode).observe(reply.elapsedTime / 1000)
    done()
  })
  worker?.shareMetrics(registry)
  app.get('/metrics', async (_request, reply) => {
    const text = await (worker ?? { metricsOfAll: () => registry.metrics() }).metricsOfAll()
    reply.header('content-type', registry.contentType)
    return text === undefined
      ? reply.code(503).send('# A worker did not answer. Ask again.\n')
      : reply.send(text)
  })
}
