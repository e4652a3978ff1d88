import { setImmediate as nextTurn } from 'node:timers/promises'
import fastify from 'fastify'
import { expect, it, vi } from 'vitest'
import type { AppServer } from '../../src/http/app_server.ts'
import type { AppParts } from '../../src/http/service_context.ts'
import { Metrics } from '../../src/metrics/metrics.ts'
import { metricsRoutes } from '../../src/metrics/metrics_routes.ts'

it('/metrics is made once for many who ask within a turn, and anew in the next', async () => {
  const metrics = new Metrics()
  const render = vi.spyOn(metrics.registry, 'metrics')
  const app = fastify()
  metricsRoutes(app as unknown as AppServer, { metrics } as AppParts)
  await app.ready()
  const ask = () => app.inject({ method: 'GET', url: '/metrics' })

  const answers = await Promise.all(Array.from({ length: 50 }, ask))
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([200]))
  expect(render.mock.calls.length).toBeLessThan(5)

  const rendered = render.mock.calls.length
  await nextTurn()
  await ask()
  expect(render.mock.calls.length).toBe(rendered + 1)
  await app.close()
})
