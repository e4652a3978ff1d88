import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { tokenFor } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'

interface Measure {
  used: number
  max: number | null
}

interface Usage {
  counted_at: string
  sessions: Measure
  entries: Measure
  bytes: Measure
  tails: Measure
  requests_per_second: { max: number | null }
}

/** As long as an answer may be behind, and a node may know an old quota, on a busy machine. */
const SOON = { timeout: 20_000 }
const DATA = { text: 'x'.repeat(89) }
/** Of the JSON in which an event with this data is sent. */
const BYTES = JSON.stringify({ type: 'note', data: DATA }).length

const service = useSharedService()

async function projectWith(
  quotas: Record<string, number | null>,
): Promise<{ project: Project; api: ApiClient }> {
  const project = await service.newProject()
  await setQuotas(project, quotas)
  return { project, api: await service.newClient({ token: project.token }) }
}

async function setQuotas(project: Project, quotas: Record<string, number | null>): Promise<void> {
  expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, { body: quotas }))
}

const usageOf = async (api: ApiClient) => expectOk(await api.request<Usage>('GET', '/api/v1/usage'))

describe('GET /usage', () => {
  it('shows what the project has beside its quotas, to its keys and to the operator', async () => {
    const { project, api } = await projectWith({ max_sessions: 10, max_bytes: 5_000 })
    const log = await newSessionLog(api)
    for (let entry = 0; entry < 3; entry++) expectOk(await log.addEvent('note', DATA))
    await newSessionLog(api)
    const expected = {
      counted_at: expect.stringMatching(TIMESTAMP),
      sessions: { used: 2, max: 10 },
      entries: { used: 3, max: null },
      bytes: { used: 3 * BYTES, max: 5_000 },
      blobs: { used: 0 },
      blob_bytes: { used: 0, max: null },
      ...{ statements: { used: 0 }, model_tokens: { used: 0, max: 1_000_000 } },
      tails: { used: 0, max: null },
      requests_per_second: { max: null },
      days: [expect.objectContaining({ sessions: 2, entries: 3, bytes: 3 * BYTES })],
    }
    await vi.waitFor(async () => expect(await usageOf(api)).toEqual(expected), SOON)
    const path = `/admin/v1/projects/${project.id}/usage`
    const forOperator = async () => expectOk(await service.adminClient().request<Usage>('GET', path))
    await vi.waitFor(async () => expect(await forOperator()).toEqual(expected), SOON)
  })

  it('counts messages, batches and copies, and no longer what was deleted', async () => {
    const { api } = await projectWith({})
    const log = await newSessionLog(api)
    const message = { role: 'user', content: 'x'.repeat(1_000) }
    expectOk(await log.add(message), 201)
    const entries = [
      { kind: 'event', type: 'note', data: DATA },
      { kind: 'message', blob: message },
    ]
    expectOk(await log.batch(entries), 201)
    const first = await vi.waitFor(async () => {
      const usage = await usageOf(api)
      expect(usage.entries.used).toBe(3)
      return usage
    }, SOON)
    const bytes = first.bytes.used
    expect(bytes).toBeGreaterThan(2_000)
    const expectUsage = (sessions: number) =>
      vi.waitFor(async () => {
        const usage = await usageOf(api)
        expect([usage.sessions.used, usage.entries.used, usage.bytes.used]).toEqual([
          sessions,
          3 * sessions,
          bytes * sessions,
        ])
      }, SOON)
    const copied = (await log.copy()).json.data
    await expectUsage(2)
    expectOk(await api.deleteSession(copied.new_session_id))
    await expectUsage(1)
  })

  it('of a project that does not exist is 404 for the operator', async () => {
    const answer = await service.adminClient().request('GET', `/admin/v1/projects/${NOBODYS_ID}/usage`)
    expectError(answer, 404, 'project_not_found')
  })
})

describe('max_sessions', () => {
  it('refuses new sessions and copies beyond it, at both nodes, until one is deleted', async () => {
    const { project, api } = await projectWith({ max_sessions: 2 })
    const other = await service.newClient()
    const elsewhere = await service.newClient({ token: project.token, node: service.secondNode })
    const log = await newSessionLog(api)
    const second = expectOk(await api.createSession({}), 201)
    for (const refused of [await api.createSession({}), await log.copy(), await elsewhere.createSession({})])
      expectError(refused, 403, 'quota_exceeded', 'max_sessions', '2 sessions', 'delete sessions')
    expect(expectOk(await api.listSessions()).items).toHaveLength(2)
    expectOk(await log.addEvent())
    expectOk(await other.createSession({}), 201)
    expectOk(await api.deleteSession(second.id))
    await vi.waitFor(async () => expectOk(await api.createSession({}), 201), SOON)
  })

  it('answers what is there already: a retry, and use_uuid of a session that exists', async () => {
    const { api } = await projectWith({ max_sessions: 1 })
    const options = { headers: { 'Idempotency-Key': randomUUID() } }
    const use_uuid = randomUUID()
    const created = expectOk(await api.createSession({ use_uuid }, options), 201)
    expect(expectOk(await api.createSession({ use_uuid }, options), 201)).toEqual(created)
    expect(expectOk(await api.createSession({ use_uuid })).id).toBe(use_uuid)
    expectError(await api.createSession({ use_uuid: randomUUID() }), 403, 'quota_exceeded')
  })

  it('is never passed by many who create at one node at once', async () => {
    const { api } = await projectWith({ max_sessions: 5 })
    const answers = await Promise.all(Array.from({ length: 40 }, () => api.createSession({})))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(35)
    expect(expectOk(await api.listSessions()).items).toHaveLength(5)
  })
})

describe('max_bytes', () => {
  it('refuses what would pass it and stores nothing of it, until it is raised', async () => {
    const { project, api } = await projectWith({ max_bytes: 3 * BYTES })
    const log = await newSessionLog(api)
    const many = Array.from({ length: 4 }, () => ({ kind: 'event', type: 'note', data: DATA }))
    expectError(await log.batch(many), 403, 'quota_exceeded', 'max_bytes', `${3 * BYTES} bytes`)
    for (let entry = 0; entry < 3; entry++) expectOk(await log.addEvent('note', DATA))
    for (const refused of [
      await log.addEvent('note', DATA),
      await log.add({ role: 'user', content: 'hello' }),
      await log.copy(),
    ])
      expectError(refused, 403, 'quota_exceeded', 'max_bytes', 'nothing was stored')
    expect(expectOk(await log.timeline()).items).toHaveLength(3)
    await setQuotas(project, { max_bytes: null })
    await vi.waitFor(async () => expectOk(await log.addEvent('note', DATA)), SOON)
  })

  it('still answers a retry of what was stored, whether it has a key or ids of its own', async () => {
    const event = { type: 'note', data: DATA }
    const entries = [{ kind: 'event', ...event, id: randomUUID() }]
    const { api } = await projectWith({ max_bytes: BYTES + JSON.stringify(entries[0]).length })
    const log = await newSessionLog(api)
    const options = { headers: { 'Idempotency-Key': randomUUID() } }
    const stored = expectOk(await api.appendEvent(log.id, event, options))
    const batch = expectOk(await log.batch(entries), 201)
    expect(expectOk(await api.appendEvent(log.id, event, options))).toEqual(stored)
    expect(expectOk(await log.batch(entries), 201)).toEqual(batch)
    const fresh = { headers: { 'Idempotency-Key': randomUUID() } }
    expectError(await api.appendEvent(log.id, event, fresh), 403, 'quota_exceeded')
    const more = [...entries, { kind: 'event', ...event, id: randomUUID() }]
    expectError(await log.batch(more), 403, 'quota_exceeded')
    expect(expectOk(await log.timeline()).items).toHaveLength(2)
  })

  it('is never passed by many who append at one node at once', async () => {
    const { api } = await projectWith({ max_bytes: 7 * BYTES })
    const logs = await Promise.all(Array.from({ length: 3 }, () => newSessionLog(api)))
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => logs[index % 3]!.addEvent('note', DATA)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7)
    expect(answers.filter(({ status }) => status === 403)).toHaveLength(53)
  })

  it('is noticed by a node where another filled it', async () => {
    const { project, api } = await projectWith({ max_bytes: 3 * BYTES })
    const log = await newSessionLog(api)
    const elsewhere = await service.newClient({ token: project.token, node: service.secondNode })
    expectOk(await elsewhere.appendEvent(log.id, { type: 'note', data: DATA }))
    expectOk(await log.addEvent('note', DATA))
    expectOk(await log.addEvent('note', DATA))
    const refusedThere = async () => {
      const answer = await elsewhere.appendEvent(log.id, { type: 'note', data: DATA })
      expectError(answer, 403, 'quota_exceeded')
    }
    await vi.waitFor(refusedThere, SOON)
  })

  it('counts input once, when it is sent and not again when it is applied', async () => {
    const input = { mode: 'queue', kind: 'event', type: 'note', data: DATA }
    const bytes = JSON.stringify(input).length
    const { api } = await projectWith({ max_bytes: bytes + BYTES })
    const log = await newSessionLog(api)
    const send = () => api.request<{ id: string }>('POST', `/api/v1/session/${log.id}/inbox`, { body: input })
    const { id } = expectOk(await send(), 201)
    expectOk(await log.addEvent('note', DATA))
    expectError(await send(), 403, 'quota_exceeded')
    const batch = { body: { apply: [id] } }
    expectOk(await api.request('POST', `/api/v1/session/${log.id}/entries`, batch), 201)
    expectError(await log.addEvent('note', DATA), 403, 'quota_exceeded')
    await vi.waitFor(async () => expect((await usageOf(api)).bytes.used).toBe(bytes + BYTES), SOON)
  })

  it("is no other project's concern", async () => {
    const { api } = await projectWith({ max_bytes: 0, max_sessions: 1 })
    const log = await newSessionLog(api)
    expectError(await log.addEvent(), 403, 'quota_exceeded')
    const other = await newSessionLog(await service.newClient())
    expectOk(await other.addEvent())
  })
})

describe('max_tails', () => {
  it('refuses a tail too many, and takes it when another has closed', async () => {
    const { project, api } = await projectWith({ max_tails: 2 })
    const log = await newSessionLog(api)
    const open = () => openTail(service.node.url, project.token, log.id)
    const tails = [await open(), await open()]
    try {
      const path = `/api/v1/session/${log.id}/timeline`
      const headers = { Accept: 'text/event-stream' }
      const third = await api.request('GET', path, { headers })
      expectError(third, 403, 'quota_exceeded', 'max_tails', '2 open tails')
      await vi.waitFor(async () => expect((await usageOf(api)).tails).toEqual({ used: 2, max: 2 }), SOON)
      tails.pop()!.close()
      await vi.waitFor(async () => tails.push(await open()), SOON)
    } finally {
      for (const tail of tails) tail.close()
    }
  })

  it('counts the tails of all tokens that its keys made', async () => {
    const { api } = await projectWith({ max_tails: 2 })
    const log = await newSessionLog(api)
    const tokens = await Promise.all([1, 2, 3].map(() => tokenFor(api, { session_id: log.id }, ['read'])))
    const tails = await Promise.all(tokens.slice(1).map((token) => openTail(service.node.url, token, log.id)))
    try {
      expect(tails.map(({ status }) => status)).toEqual([200, 200])
      const third = await openTail(service.node.url, tokens[0]!, log.id)
      await third.whenEnded()
      expect([third.status, third.text]).toEqual([403, expect.stringContaining('max_tails')])
    } finally {
      for (const tail of tails) tail.close()
    }
  })
})

describe('a quota', () => {
  it('is shown with its project, and set by null to none', async () => {
    const { project } = await projectWith({ max_sessions: 1, max_bytes: 2, max_tails: 3 })
    const shown = async () => {
      const { items } = expectOk(
        await service.adminClient().request<{ items: Project[] }>('GET', '/admin/v1/projects'),
      )
      return items.find(({ id }) => id === project.id)
    }
    expect(await shown()).toMatchObject({ max_sessions: 1, max_bytes: 2, max_tails: 3 })
    await setQuotas(project, { max_bytes: null })
    expect(await shown()).toMatchObject({ max_sessions: 1, max_bytes: null, max_tails: 3 })
  })

  it.each([-1, 1.5, '5', 2 ** 53])('that is %s is refused', async (max_bytes) => {
    const { id } = await service.newProject()
    const path = `/admin/v1/projects/${id}`
    const answer = await service.adminClient().request('PATCH', path, { body: { max_bytes } })
    expectError(answer, 400, 'invalid_request', 'max_bytes')
  })
})
