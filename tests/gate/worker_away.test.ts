import { randomBytes } from 'node:crypto'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { ADMIN_TOKEN, expectOrderlyEnds, startServer } from '../harness/annals_process.ts'
import { apiClient } from '../harness/api_client.ts'
import { createClusterDatabase } from '../harness/cluster_database.ts'
import { expectOk } from '../harness/expectations.ts'
import { httpClient } from '../harness/http_client.ts'
import { placesOf, switchSearch, untilIndexed } from '../harness/search.ts'
import { createProject } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { startReceiver } from '../harness/webhook_receiver.ts'

const { mode } = inject('testServer')
const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const WAIT = { timeout: 90_000 }

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  it('while a worker is away, sessions of projects on others expire, webhooks are tried again, inputs are told of and changes are found; its own follow when it is back', async (context) => {
    const cluster = await createClusterDatabase()
    if (!cluster) return context.skip('it takes a superuser to make a database')
    onTestFinished(() => cluster.drop())
    const env = { DATABASE_URL: cluster.url, ANNALS_RETENTION_MS: '500', ANNALS_TOKEN_CACHE_MS: '0' }
    const [node, other] = [await startServer(env), await startServer(env)]
    onTestFinished(async () => expectOrderlyEnds([await node.stop()]))
    const admin = httpClient(node.url, ADMIN_TOKEN)

    /** A project with all that works in the background, and what happens to it. The first use of each needs all workers. */
    const newTenant = async () => {
      const { id, token } = await createProject(admin)
      const client = (url: string) => apiClient(url, token)
      const api = client(node.url)
      await switchSearch(admin, id, true)
      let isRefusing = true
      const receiver = await startReceiver(SECRET, () => (isRefusing ? 503 : 204))
      onTestFinished(() => receiver.close())
      const body = { url: receiver.url, events: ['event', 'input.added'], secret: SECRET }
      expectOk(await api.request('POST', '/api/v1/webhooks', { body }), 201)
      const log = await newSessionLog(api)
      const input = { body: { mode: 'queue', kind: 'event', type: 'go', data: {} } }
      const firstInput = await api.request<{ id: string }>('POST', `/api/v1/session/${log.id}/inbox`, input)
      const apply = { body: { apply: [expectOk(firstInput, 201).id] } }
      expectOk(await api.request('POST', `/api/v1/session/${log.id}/entries`, apply), 201)
      await untilIndexed(api)
      const expiring = await newSessionLog(api)
      return {
        id,
        /** Through the node that does not stay to see to it. */
        change: async (expires_in_s: number) => {
          const through = client(other.url)
          expectOk(await through.appendEvent(log.id, { type: 'note', data: { text: 'refund' } }))
          expectOk(await through.request('POST', `/api/v1/session/${log.id}/inbox`, input), 201)
          expectOk(
            await through.request('PATCH', `/api/v1/session/${expiring.id}`, { body: { expires_in_s } }),
          )
        },
        untilRefused: () => vi.waitFor(() => expect(receiver.requests).toBeGreaterThan(1), WAIT),
        untilDone: async () => {
          isRefusing = false
          await vi.waitFor(async () => {
            expect((await api.getSession(expiring.id)).status).toBe(404)
            expect(await placesOf(api, 'refund')).toEqual([`${log.id} 2`])
            const told = receiver.received.map(({ type }) => type)
            expect(told).toEqual(expect.arrayContaining(['event.note', 'input.added']))
          }, WAIT)
        },
      }
    }

    const away = await newTenant()
    const worker = await cluster.workerOf(away.id)
    let living = await newTenant()
    while ((await cluster.workerOf(living.id)) === worker) living = await newTenant()
    await away.change(5)
    await cluster.takeAway(worker)
    await living.change(1)
    await living.untilRefused()
    await other.kill()
    await living.untilDone()
    const told = node.logLines.filter((line) => line.includes('background work for its projects waits'))
    expect(new Set(told.map((line) => JSON.parse(line).machine))).toEqual(new Set([worker]))
    // Once for requests' housekeeping, once for what looks at changes, and not at every look.
    expect(told.length).toBeLessThanOrEqual(4)
    const ready = await httpClient(node.url).request('GET', '/ready')
    expect(JSON.parse(ready.text)).toEqual({ status: 'ready', workers_away: [worker] })
    await cluster.bringBack(worker)
    await away.untilDone()
  }, 600_000)
})
