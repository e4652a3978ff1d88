import { describe, expect, it } from 'vitest'
import { expectError, expectOk } from '../harness/expectations.ts'
import { whileSessionIsHeld } from '../harness/held_session.ts'
import type { Answer } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'

const QUEUED_MAX = 4

const service = useSharedService()
const event = { type: 'note', data: { text: 'x'.repeat(100) } }

function expectRetryAfter(answer: Answer<unknown>): void {
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
}

/** Fills the queue of a node while no append can commit, then lets go; gives the statuses of all appends. */
async function overload(env: Record<string, string>): Promise<{ statuses: number[]; stored: number }> {
  const node = await service.startNode(env)
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token, node })
  const { id } = expectOk(await api.createSession({}), 201)
  const answers = await whileSessionIsHeld(
    service.databaseUrl,
    project.id,
    id,
    async ({ waiting, release }) => {
      const calls = [api.appendEvent(id, event)]
      await waiting()
      calls.push(...Array.from({ length: 20 }, () => api.appendEvent(id, event)))
      const firstRefusal = await Promise.race(calls)
      expectError(firstRefusal, 503, 'overloaded')
      expectRetryAfter(firstRefusal)
      expectOk(await api.getSession(id))
      await release()
      return Promise.all(calls)
    },
  )
  expectOk(await api.appendEvent(id, event))
  const stored = expectOk(await api.listEvents(id, { limit: 200 })).items
  expect(stored.map((item) => item.seq)).toEqual(stored.map((_, index) => index + 1))
  return { statuses: answers.map((answer) => answer.status), stored: stored.length - 1 }
}

describe('a full queue of appends', () => {
  it.each<[string, Record<string, string>]>([
    ['by number', { ANNALS_QUEUE_REQUESTS_MAX: String(QUEUED_MAX) }],
    ['by bytes', { ANNALS_QUEUE_BYTES_MAX: '1024' }],
  ])('%s is 503 overloaded with Retry-After: nothing refused is stored, the rest is', async (_case, env) => {
    const { statuses, stored } = await overload(env)
    const answered = statuses.filter((status) => status === 200).length
    expect(answered).toBeGreaterThanOrEqual(QUEUED_MAX)
    expect(answered).toBeLessThan(statuses.length)
    expect(statuses.filter((status) => status === 503)).toHaveLength(statuses.length - answered)
    expect(stored).toBe(answered)
  })
})
