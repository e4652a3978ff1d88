import type { AppServer } from '@annals/kits/http/app_server.js'
import type { Kits } from '@annals/kits/module.js'
import { schemaVersion } from '@annals/kits/postgres/migrations.js'
import Fastify from 'fastify'
import { expect, it, onTestFinished } from 'vitest'
import { operationRoutes } from '../../src/service/operation_routes.js'

it('asks a cluster that hangs for its workers once at a time, so that a connection for keys stays free', async () => {
  const asked: string[] = []
  const reserved = {
    distributed: true,
    query: async ({ name }: { name: string }) => {
      asked.push(name)
      return name === 'check_ready' ? [{ version: String(schemaVersion()) }] : new Promise(() => {})
    },
  }
  const app = Fastify() as unknown as AppServer
  onTestFinished(() => app.close())
  operationRoutes(app, { reserved, isReady: () => true } as unknown as Kits)
  const answers = await Promise.all([1, 2, 3].map(() => app.inject('/ready')))
  for (const answer of answers)
    expect(answer.json()).toEqual({ status: 'ready', workers_away: ['a worker that does not answer'] })
  expect(asked.filter((name) => name === 'find_workers_away')).toHaveLength(1)
})
