import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { ERROR_NAMES } from '../../kits/src/errors.ts'
import { Metrics, watchChanges } from '../../kits/src/metrics/metrics.ts'
import { FakeDatabase } from './log/append/fake_database.ts'

const read = (path: string) =>
  readFileSync(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), 'utf8')
const alerts = read('deploy/alerts.yml')
const asking = { 'every alert': alerts, 'every panel of the dashboard': read('deploy/grafana.json') }
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name!)

it.each(Object.entries(asking))('%s asks for metrics and errors that there are', async (_name, text) => {
  const metrics = new Metrics()
  const reserved = Object.assign(new FakeDatabase(), { renew: () => {}, stalls: false })
  const shared = { usage: () => ({ total: 0, idle: 0, waiting: 0, waits: 0, refusals: 0 }) }
  metrics.watch({
    memory: { taken: 0, places_max: 1, counts: { waits: 0, refusals: 0 } },
    pools: { requests: shared, appends: shared, reserved, changes: shared },
  })
  metrics.watchLog(
    { load: () => ({ requests: 0, bytes: 0, flushes: 0 }) },
    { load: () => ({ subscriptions: 0 }) },
  )
  watchChanges(metrics.registry, { load: () => new Map() })
  const there = all(await metrics.registry.metrics(), /^# TYPE (\w+)/gm)
  const asked = all(text, /\b((?:annals|nodejs|process)_\w+)/g).map((name) =>
    name.replace(/_(?:bucket|count|sum)$/, ''),
  )
  expect(asked).not.toEqual([])
  expect(asked.filter((name) => !there.includes(name))).toEqual([])
  const errors = all(text, /error="(\w+)"/g)
  expect(errors.filter((name) => !(ERROR_NAMES as readonly string[]).includes(name))).toEqual([])
})

it('every alert stands in the operator’s table, and nothing else does', () => {
  const explained = all(read('docs/operations.md'), /^\| (Annals[\w, ]+) \|/gm).flatMap((row) =>
    row.split(', '),
  )
  expect(explained.sort()).toEqual(all(alerts, /alert: (\w+)/g).sort())
})
