import { Histogram, type Metric, type Registry } from 'prom-client'

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

  /** Called by the registry: the values of all. */
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
