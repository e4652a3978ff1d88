import fastify from 'fastify'
import { expect, it, vi } from 'vitest'
import type { AppServer } from '../../src/http/app_server.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import { metricsRoutes } from '../../src/metrics/metrics_routes.ts'

it('/metrics is made a few times for many who ask at once, and anew for who asks later', async () => {
  const metrics = new Metrics()
  const render = vi.spyOn(metrics.registry, 'metrics')
  const app = fastify()
  metricsRoutes(app as unknown as AppServer, { metrics })
  await app.ready()
  const ask = () => app.inject({ method: 'GET', url: '/metrics' })

  const answers = await Promise.all(Array.from({ length: 50 }, ask))
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  expect(render.mock.calls.length).toBeLessThan(5)

  for (let shed = 1; shed <= 3; shed += 1) {
    metrics.shed(1)
    expect((await ask()).body).toMatch(new RegExp(`^annals_requests_shed_total ${shed}$`, 'm'))
  }
  await app.close()
})
