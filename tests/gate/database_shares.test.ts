import { describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import type { Answer } from '../harness/http_client.ts'
import { metricSamples } from '../harness/metric_samples.ts'
import { useService } from '../harness/service.ts'

/*
 * One project has more requests under way than there are connections, and each takes as long as it can. Another one
 * must not notice: every operation that needs the database succeeds, with a key that the node has never seen.
 */

const CONNECTIONS_MAX = 4
const service = useService({
  ANNALS_DATABASE_CONNECTIONS_MAX: String(CONNECTIONS_MAX),
  ANNALS_DATABASE_WAIT_MS_MAX: '1500',
})
const event = { type: 'note', data: {} }

async function expectServed(): Promise<void> {
  const quiet = await service.newClient()
  const { id } = expectOk(await quiet.createSession({ user: 'ada', configs: { agent: 'a' } }), 201)
  expectOk(await quiet.appendEvent(id, event), 200)
  expectOk(await quiet.getSession(id))
  expect(expectOk(await quiet.listEvents(id)).items).toHaveLength(1)
  expect(expectOk(await quiet.listSessions({ filter_by_configs: '{"agent":"a"}' })).items).toHaveLength(1)
  expectOk(await quiet.request('PATCH', `/api/v1/session/${id}/configs`, { body: { configs: { b: 1 } } }))
  expectOk(await quiet.deleteSession(id))
  expect((await quiet.request('GET', '/ready')).status).toBe(200)
}

/** Requests of a project that each hold a connection until the session is let go. */
function stuckRequests(busy: ApiClient, sessionId: string, count: number) {
  return Array.from({ length: count }, () =>
    busy.request('PATCH', `/api/v1/session/${sessionId}/configs`, { body: { configs: { a: 1 } } }),
  )
}

describe('a project whose requests hold the database for long', () => {
  it('has half of the connections, is refused what waits for too long, and keeps nobody else out', async () => {
    const project = await service.newProject()
    const busy = await service.newClient({ token: project.token })
    const { id } = expectOk(await busy.createSession(), 201)
    await whileSessionIsHeld(service.databaseUrl, project.id, id, async ({ waiting, release }) => {
      const answers: Answer[] = []
      const stuck = stuckRequests(busy, id, 24).map(async (request) => answers.push(await request))
      await waiting(CONNECTIONS_MAX / 2)
      await expectServed()
      // Whoever waited for too long is told so; the others have their connections still.
      await vi.waitFor(() => expect(answers).toHaveLength(24 - CONNECTIONS_MAX / 2), { timeout: 15_000 })
      for (const refused of answers) {
        expectError(refused, 503, 'overloaded')
        expect(refused.headers['retry-after']).toBe('1')
      }
      await expectServed()
      await release()
      await Promise.all(stuck)
      for (const served of answers.slice(24 - CONNECTIONS_MAX / 2)) expectOk(served)
    })
    expectOk(await busy.getSession(id))
  })

  it('shows in the metrics', async () => {
    const { text } = await service.rawClient().request('GET', '/metrics')
    const samples = metricSamples(text)
    for (const name of ['annals_database_waits_total', 'annals_database_refusals_total']) {
      expect(samples.get(`${name}{pool="requests"}`)).toBeGreaterThanOrEqual(22)
      expect(samples.get(`${name}{pool="appends"}`)).toBe(0)
    }
  })

  it('does not add up: four of them at once leave room for a fifth', async () => {
    const project = await service.newProject()
    const first = await service.newClient({ token: project.token })
    const { id } = expectOk(await first.createSession(), 201)
    await whileSessionIsHeld(service.databaseUrl, project.id, id, async ({ waiting, release }) => {
      const stuck = stuckRequests(first, id, 8)
      await waiting(CONNECTIONS_MAX / 2)
      const other = await service.newProject()
      const second = await service.newClient({ token: other.token })
      const { id: otherId } = expectOk(await second.createSession(), 201)
      await whileSessionIsHeld(service.databaseUrl, other.id, otherId, async (held) => {
        stuck.push(...stuckRequests(second, otherId, 8))
        await held.waiting()
        await expectServed()
        await held.release()
      })
      await release()
      await Promise.all(stuck)
    })
  })
})
