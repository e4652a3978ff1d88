import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { getRequest, slowReader } from '../harness/slow_reader.ts'
import { issueToken } from '../harness/tokens.ts'

const EVENTS = 40
const EVENT_LENGTH = 1_000_000
const STALL_MS = 1_000

const service = useSharedService()
/** A node that waits for its readers for a moment only, and believes a key for a moment only. */
let hasty: AnnalsServer
let project: Project
let log: SessionLog
/** The path of an answer of 40 MB: more than the buffers of any connection hold. */
let large: string

beforeAll(async () => {
  hasty = await service.startNode({ ANNALS_STALL_MS_MAX: String(STALL_MS), ANNALS_TOKEN_CACHE_MS: '100' })
  project = await service.newProject()
  log = await newSessionLog(await service.newClient({ token: project.token }))
  for (let at = 0; at < EVENTS; at++)
    expectOk(await log.addEvent('large', { text: 'x'.repeat(EVENT_LENGTH) }))
  large = `/api/v1/session/${log.id}/events?limit=200`
})

const cuts = () =>
  hasty.logLines.filter((line) => line.includes('closed connections whose clients did not read')).length

describe('a reader that takes nothing of an answer is closed', () => {
  it.each<[string, (token: string) => string]>([
    ['a page that is streamed', (token) => getRequest(large, token)],
    [
      'many answers that were asked for at once',
      (token) => getRequest(`/api/v1/session/${log.id}/events?limit=1`, token).repeat(EVENTS),
    ],
    [
      'a tail',
      (token) =>
        getRequest(`/api/v1/session/${log.id}/timeline?after_seq=0`, token, 'Accept: text/event-stream'),
    ],
    ['the description of the API, without a key', () => getRequest('/openapi.json', 'none').repeat(200)],
  ])('%s', async (_case, requests) => {
    const before = cuts()
    const reader = await slowReader(hasty.url, requests(project.token))
    await vi.waitFor(() => expect(cuts()).toBeGreaterThan(before), { timeout: 20_000, interval: 50 })
    expect(await reader.takeAll()).toBeLessThan(EVENTS * EVENT_LENGTH)
    expect(reader.head()).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('a reader that takes its time', () => {
  it('gets all of a page, also after more time than it may take nothing', async () => {
    const reader = await slowReader(hasty.url, getRequest(large, project.token, 'Connection: close'))
    const began = performance.now()
    while (performance.now() - began < 3 * STALL_MS) {
      await reader.take(100_000)
      await new Promise((resolve) => setTimeout(resolve, STALL_MS / 20))
    }
    expect(await reader.takeAll()).toBeGreaterThan(EVENTS * EVENT_LENGTH)
  })
})

describe('a key that is revoked during an answer', () => {
  it('ends the answer before most of it was read', async () => {
    const { id, token } = await issueToken(service.adminClient(), project.id, { name: 'reader' })
    const node = await service.startNode({ ANNALS_TOKEN_CACHE_MS: '100' })
    const reader = await slowReader(node.url, getRequest(large, token, 'Connection: close'))
    await reader.take(100_000)
    const path = `/admin/v1/projects/${project.id}/tokens/${id}`
    expectOk(await service.adminClient(node).request('DELETE', path))
    await vi.waitFor(async () => {
      const client = service.rawClient(token, node)
      expect((await client.request('GET', '/api/v1/ping')).status).toBe(401)
    })
    expect(await reader.takeAll()).toBeLessThan((EVENTS / 2) * EVENT_LENGTH)
  })
})
