import { Counter, Gauge, type Registry } from 'prom-client'
import type { Changes } from '../changes/changes.js'

/** Shows by consumer how far those are that look at changed sessions. */
export function watchChanges(registry: Registry, changes: Pick<Changes, 'load'>): void {
  const options = { labelNames: ['consumer' as const], registers: [registry] }
  const gauge = (name: string, help: string, field: 'waiting' | 'lag_s') =>
    new Gauge({
      ...options,
      name,
      help,
      // Each process has looked at the same database.
      aggregator: 'max',
      collect() {
        for (const [consumer, load] of changes.load()) this.set({ consumer }, load[field])
      },
    })
  const total = (name: string, help: string, field: 'consumed' | 'failures') =>
    new Counter({
      ...options,
      name,
      help,
      collect() {
        this.reset()
        for (const [consumer, load] of changes.load()) this.inc({ consumer }, load[field])
      },
    })
  gauge(
    'annals_changes_waiting',
    'Changed sessions, of all projects, that the consumer has not seen.',
    'waiting',
  )
  gauge('annals_changes_lag_seconds', 'How long the first of these has waited.', 'lag_s')
  total('annals_changes_consumed_total', 'Changed sessions that the consumer has seen.', 'consumed')
  total('annals_changes_failures_total', 'Times that the consumer failed.', 'failures')
}
