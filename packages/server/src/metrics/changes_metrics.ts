import type { Registry } from 'prom-client'
import type { Changes, ConsumerLoad } from '../changes/changes.js'
import { readMetrics } from './read_metrics.js'

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
