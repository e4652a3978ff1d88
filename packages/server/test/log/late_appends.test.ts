import type { IncomingMessage } from 'node:http'
import Fastify from 'fastify'
import { expect, it, onTestFinished } from 'vitest'
import type { AppServer } from '../../../kits/src/http/app_server.ts'
import { lateAppends } from '../../src/log/append_within_quota.ts'

const SESSION = '/api/v1/session/01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

it.each([
  ['POST', `${SESSION}/events`, true],
  ['POST', `${SESSION}/events?`, true],
  ['POST', `${SESSION}/events?at=/configs`, true],
  ['POST', `${SESSION}/retractions`, true],
  ['POST', `${SESSION}/retractions?x=1`, true],
  ['GET', `${SESSION}/events`, false],
  ['POST', `${SESSION}/copy`, false],
  ['POST', `${SESSION}/copy?x=/events`, false],
  ['POST', '/', false],
])(
  'a crowded service knows from the routes whether a request appends: %s %s',
  async (method, url, appends) => {
    const app = Fastify() as unknown as AppServer
    onTestFinished(() => app.close())
    const isLate = lateAppends(app, { waitingRequests: 1_000, isBehind: () => true })
    for (const name of ['events', 'retractions'])
      app.post(`/api/v1/session/:session_id/${name}`, { config: { appends: true } }, async () => '')
    app.post('/api/v1/session/:session_id/copy', async () => '')
    expect(isLate({ method, url } as IncomingMessage, () => 'project')).toBe(appends)
  },
)
