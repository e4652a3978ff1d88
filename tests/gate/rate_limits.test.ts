import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import type { Answer } from '../harness/http_client.ts'
import { useSharedService } from '../harness/service.ts'
import { issueToken } from '../harness/tokens.ts'

const LIMIT = 5

const service = useSharedService()
let limiting: AnnalsServer

beforeAll(async () => {
  limiting = await service.startNode({ ANNALS_RATE_LIMIT_PER_SECOND: String(LIMIT) })
})

/** Asks until it is refused; every answer before that says what is left. */
async function askUntilRefused(api: ApiClient): Promise<Answer<unknown>> {
  for (let asked = 0; asked < 1_000; asked += 1) {
    const answer = await api.request('GET', '/api/v1/ping')
    expect(answer.headers['ratelimit-limit']).toBe(String(LIMIT))
    expect(answer.headers['ratelimit-reset']).toMatch(/^[01]$/)
    if (answer.status !== 200) return answer
    expect(Number(answer.headers['ratelimit-remaining'])).toBeLessThan(LIMIT)
    expect(answer.headers['retry-after']).toBeUndefined()
  }
  throw new Error('never refused')
}

const setLimit = (projectId: string, rate_limit_per_second: unknown) =>
  service
    .adminClient()
    .request<{ rate_limit_per_second: number | null }>('PATCH', `/admin/v1/projects/${projectId}`, {
      body: { rate_limit_per_second },
    })

describe('a key with a limit', () => {
  it('is refused with 429 beyond it, told when to come back, and taken again then', async () => {
    const api = await service.newClient({ token: (await service.newProject()).token, node: limiting })
    const refused = await askUntilRefused(api)
    expectError(refused, 429, 'rate_limited', String(LIMIT))
    expect(refused.headers).toMatchObject({ 'ratelimit-remaining': '0', 'retry-after': '1' })
    await vi.waitFor(async () => expect((await api.request('GET', '/api/v1/ping')).status).toBe(200), {
      timeout: 5_000,
      interval: 100,
    })
  })

  it('does nothing that was refused', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token, node: limiting })
    const answers = await Promise.all(Array.from({ length: 4 * LIMIT }, () => api.createSession({})))
    const stored = answers.filter((answer) => answer.status === 201)
    expect(stored.length, answers[0]!.text).toBeGreaterThanOrEqual(LIMIT)
    expect(stored.length).toBeLessThan(answers.length)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectError(answer, 429, 'rate_limited')
    const elsewhere = await service.newClient({ token: project.token })
    expect(expectOk(await elsewhere.listSessions({ limit: 200 })).items).toHaveLength(stored.length)
  })

  it('leaves the others alone, also those of its own project', async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token, node: limiting })
    const second = await issueToken(service.adminClient(), project.id, { name: 'second' })
    const other = await service.newClient({ token: second.token, node: limiting })
    await askUntilRefused(api)
    expect((await other.request('GET', '/api/v1/ping')).headers['ratelimit-remaining']).toBe(
      String(LIMIT - 1),
    )
  })

  it('is counted only once it is known: a wrong key is 401 however often', async () => {
    const stranger = service.rawClient('sk-stranger', limiting)
    for (let asked = 0; asked < 2 * LIMIT; asked += 1) {
      const answer = await stranger.request('GET', '/api/v1/ping')
      expectError(answer, 401, 'unauthorized')
      expect(answer.headers['ratelimit-limit']).toBeUndefined()
    }
  })
})

describe('a project’s own limit', () => {
  const limitSeen = async (api: ApiClient) =>
    (await api.request('GET', '/api/v1/ping')).headers['ratelimit-limit']

  it('takes the place of the service’s within five seconds at every node, and goes again', async () => {
    const project = await service.newProject()
    const clients = await Promise.all(
      [service.node, limiting].map((node) => service.newClient({ token: project.token, node })),
    )
    const seen = () => Promise.all(clients.map(limitSeen))
    const expectSoon = (limits: Array<string | undefined>) =>
      vi.waitFor(async () => expect(await seen()).toEqual(limits), { timeout: 6_000, interval: 300 })
    expect(await seen()).toEqual([undefined, String(LIMIT)])
    expect(expectOk(await setLimit(project.id, 77)).rate_limit_per_second).toBe(77)
    await expectSoon(['77', '77'])
    expectOk(await setLimit(project.id, 0))
    await expectSoon([undefined, undefined])
    expect(expectOk(await setLimit(project.id, null)).rate_limit_per_second).toBeNull()
    await expectSoon([undefined, String(LIMIT)])
  })

  it('is refused where it does not fit, and for a project that there is not', async () => {
    const { id } = await service.newProject()
    for (const limit of [-1, 1.5, '5', 1_000_001, [], {}])
      expectError(await setLimit(id, limit), 400, 'invalid_request', '/rate_limit_per_second')
    expectError(await setLimit(NOBODYS_ID, 5), 404, 'project_not_found')
  })
})
