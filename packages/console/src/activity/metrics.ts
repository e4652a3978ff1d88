/** One line of Prometheus' text format. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Parses the text of /metrics. */
export function readMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const match = /^([a-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/i.exec(line)
    if (!match) return []
    const labels = Object.fromEntries(
      [...(match[2] ?? '').matchAll(/\b(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]),
    )
    return [
      { name: match[1]!, labels, value: match[3] === '+Inf' ? Number.POSITIVE_INFINITY : Number(match[3]) },
    ]
  })
}

const DURATION = 'annals_http_request_duration_seconds'
const APPENDS = /\/session\/:session_id\/(?:events|messages|entries)$/

/** The figures of the activity view, from two readings of the metrics. */
export interface Moment {
  /** Seconds since 1970. */
  at: number
  appends_per_s: number
  requests_per_s: number
  errors_per_s: number
  /** ms; undefined if nothing was appended in the meantime. */
  append_p50: number | undefined
  append_p99: number | undefined
  queue: number
  tails: number
  connections: number
  waiting: number
  memory_bytes: number
  cpu_share: number
}

export interface Reading {
  at: number
  samples: Sample[]
}

/** The difference of two readings. A restarted service starts at 0. */
export function momentBetween(before: Reading, after: Reading): Moment {
  const seconds = after.at - before.at
  const sum = (
    { samples }: Reading,
    name: string,
    fits: (labels: Sample['labels']) => boolean = () => true,
  ) =>
    samples.reduce(
      (total, sample) => (sample.name === name && fits(sample.labels) ? total + sample.value : total),
      0,
    )
  const grown = (name: string, fits?: (labels: Sample['labels']) => boolean) =>
    Math.max(sum(after, name, fits) - sum(before, name, fits), 0)
  const is_append = ({ route, method, status }: Sample['labels']) =>
    method === 'POST' && status!.startsWith('2') && APPENDS.test(route!)
  const bounds = [
    ...new Set(
      after.samples.filter(({ name }) => name === `${DURATION}_bucket`).map(({ labels }) => labels.le!),
    ),
  ]
  const buckets = bounds
    .map((le) => ({
      le: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le),
      count: grown(`${DURATION}_bucket`, (labels) => labels.le === le && is_append(labels)),
    }))
    .sort((a, b) => a.le - b.le)
  return {
    at: after.at,
    appends_per_s: grown(`${DURATION}_count`, is_append) / seconds,
    requests_per_s: grown(`${DURATION}_count`) / seconds,
    errors_per_s: grown(`${DURATION}_count`, ({ status }) => status!.startsWith('5')) / seconds,
    append_p50: quantile(buckets, 0.5),
    append_p99: quantile(buckets, 0.99),
    queue: sum(after, 'annals_append_queue_requests'),
    tails: sum(after, 'annals_tails'),
    connections: sum(after, 'annals_database_connections'),
    waiting: sum(after, 'annals_database_waiting'),
    memory_bytes: sum(after, 'process_resident_memory_bytes'),
    cpu_share: grown('process_cpu_seconds_total') / seconds,
  }
}

/** A percentile of the requests' durations, in ms, interpolated within the histogram's buckets. */
function quantile(buckets: Array<{ le: number; count: number }>, share: number): number | undefined {
  const all = buckets.at(-1)?.count ?? 0
  if (all === 0) return undefined
  const index = buckets.findIndex(({ count }) => count >= all * share)
  const { le, count } = buckets[index]!
  const below = buckets[index - 1] ?? { le: 0, count: 0 }
  if (!Number.isFinite(le)) return below.le * 1000
  return (
    (below.le + ((le - below.le) * (all * share - below.count)) / Math.max(count - below.count, 1)) * 1000
  )
}
