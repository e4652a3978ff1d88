import { Histogram, Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { RequestSeconds } from '../../src/metrics/metrics.ts'

const BUCKETS = [0.001, 0.01, 1]

it('the durations of requests read as one histogram with labels, as text and as what workers send each other', async () => {
  const [ours, librarys] = [new Registry(), new Registry()]
  const requests = new RequestSeconds(ours, BUCKETS)
  const { name, help } = await requests.get()
  const labelNames = ['route', 'method', 'status'] as const
  const histogram = new Histogram({ name, help, labelNames, buckets: BUCKETS, registers: [librarys] })
  const observe = (route: string, method: string, status: number, seconds: number) => {
    requests.of(route, method, status).observe(seconds)
    histogram.labels(route, method, String(status)).observe(seconds)
  }
  expect(await ours.metrics()).toBe(await librarys.metrics())
  observe('/a', 'GET', 200, 0.0005)
  observe('/a', 'GET', 200, 0.001)
  observe('/a', 'GET', 404, 0.02)
  observe('/a', 'POST', 200, 7)
  observe('/b/:id', 'GET', 200, 0.3)
  expect(await ours.metrics()).toBe(await librarys.metrics())
  expect(await ours.getMetricsAsJSON()).toEqual(await librarys.getMetricsAsJSON())
})
