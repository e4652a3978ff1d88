import { Counter, Gauge, type Registry } from 'prom-client'
import type { MemoryBudget } from '../fairness/memory_budget.js'

export type WatchedMemory = Pick<MemoryBudget, 'taken' | 'places_max' | 'counts'>

/** Exposes how much of the memory budget is in use, and how many requests had to wait. */
export function watchMemory(registry: Registry, memory: WatchedMemory): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  const total = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  gauge(
    'annals_memory_bytes',
    'Bytes of the memory budget in use by connections and requests.',
    () => memory.taken,
  )
  gauge('annals_memory_bytes_max', 'Bytes of the memory budget.', () => memory.places_max)
  total('annals_memory_waits_total', 'Requests that waited for memory.', () => memory.counts.waits)
  total(
    'annals_memory_refusals_total',
    'Requests refused because no memory was free.',
    () => memory.counts.refusals,
  )
}
