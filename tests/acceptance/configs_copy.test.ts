import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient, Session } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import {
  mixedEntries,
  newSessionLog,
  type SessionLog,
  sessionLog,
  type TimelineItem,
} from '../harness/session_log.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

const configsPath = (id: string) => `/api/v1/session/${id}/configs`
const getConfigs = (id: string) => api.request<Session>('GET', configsPath(id))
const put = (id: string, configs: unknown) => api.request('PUT', configsPath(id), { body: { configs } })
const patch = (id: string, configs: unknown, client = api) =>
  client.request<{ configs: Record<string, unknown> }>('PATCH', configsPath(id), { body: { configs } })
const itemsOf = (log: SessionLog) => walkPages((cursor) => log.timeline({ limit: 200, cursor }))

describe('the configs of a session', () => {
  it('are given with the session, replaced as a whole and merged by key', async () => {
    const session = expectOk(await api.createSession({ configs: { a: 1, b: { c: 2 } } }), 201)
    expect(expectOk(await getConfigs(session.id))).toEqual(session)
    expect(expectOk(await put(session.id, { d: [null], e: 1 }))).toEqual({})
    expect(expectOk(await getConfigs(session.id)).configs).toEqual({ d: [null], e: 1 })
    expect(expectOk(await patch(session.id, { d: { x: null }, e: null, f: 2 }))).toEqual({
      configs: { d: { x: null }, f: 2 },
    })
    const after = expectOk(await api.getSession(session.id))
    expect(after).toEqual({ ...session, configs: { d: { x: null }, f: 2 }, updated_at: after.updated_at })
    expect(after.updated_at > session.updated_at).toBe(true)
    expectOk(await put(session.id, {}))
    expect(expectOk(await getConfigs(session.id)).configs).toEqual({})
  })

  it('keep every digit of their numbers through a merge', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const configs = ['{"a":12345678901234567890}', '{"b":0.12345678901234567890}']
    for (const [index, text] of configs.entries())
      expectOk(
        await api.request(index ? 'PATCH' : 'PUT', configsPath(id), { rawBody: `{"configs":${text}}` }),
      )
    const expected = exactJson('{"a":12345678901234567890,"b":0.12345678901234567890}')
    expect(exactAt((await getConfigs(id)).text, 'data', 'configs')).toEqual(expected)
  })

  it('lose nothing of 30 simultaneous patches of different keys at two nodes', async () => {
    const second = await service.newClient({ token: project.token, node: service.secondNode })
    const { id } = expectOk(await api.createSession({ configs: { start: true } }), 201)
    const patches = Array.from({ length: 30 }, (_, n) => patch(id, { [`k${n}`]: n }, n % 2 ? api : second))
    for (const answer of await Promise.all(patches)) expectOk(answer)
    const keys = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`k${n}`, n]))
    expect(expectOk(await getConfigs(id)).configs).toEqual({ start: true, ...keys })
  })

  it('cannot grow without bound', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const statuses: number[] = []
    for (let n = 0; n < 8; n += 1) statuses.push((await patch(id, { [`k${n}`]: 'x'.repeat(40_000) })).status)
    expect(statuses.at(-1)).toBe(413)
    const keys = statuses.flatMap((status, n) => (status === 200 ? [`k${n}`] : []))
    expect(Object.keys(expectOk(await getConfigs(id)).configs).sort()).toEqual(keys)
  })

  it('that do not fit are refused and change nothing', async () => {
    const { id } = expectOk(await api.createSession({ configs: { a: 1 } }), 201)
    const before = expectOk(await getConfigs(id))
    for (const change of [put, patch]) {
      for (const configs of [null, [], 'x', undefined])
        expectError(await change(id, configs), 400, 'invalid_request', 'configs')
      expectError(await change(id, { b: 'x'.repeat(65_536) }), 413, 'payload_too_large')
      expectError(await change(NOBODYS_ID, {}), 404, 'session_not_found')
    }
    expectError(
      await api.request('PUT', configsPath(id), { body: { configs: {}, surprise: 1 } }),
      400,
      'invalid_request',
      'surprise',
    )
    expect(expectOk(await getConfigs(id))).toEqual(before)
  })
})

/** What a copy keeps of an entry: all but ids and what the session is called. */
const kept = ({ id: _id, session_id: _session, parent_id: _parent, ...rest }: TimelineItem) => rest
async function copied(log: SessionLog): Promise<SessionLog> {
  const { old_session_id, new_session_id } = expectOk(await log.copy())
  expect(old_session_id).toBe(log.id)
  expect(new_session_id).not.toBe(log.id)
  return sessionLog(api, new_session_id)
}

describe('a copy of a session', () => {
  it('has the same entries, seqs, order, metas and settings, and ids of its own', async () => {
    const log = await newSessionLog(api, { user: 'ada', configs: { a: [1] }, disable_task_tracking: true })
    expectOk(await log.batch(mixedEntries(30)), 201)
    const blob = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, odd: true }] }
    const { id } = expectOk(await log.add(blob, { format: 'gemini' }), 201)
    expectOk(await log.patchMeta(id, { late: 1 }))
    const copy = await copied(log)
    const [original, items] = [await itemsOf(log), await itemsOf(copy)]
    expect(items.map(kept)).toEqual(original.map(kept))
    const ids = [...original, ...items].map((item) => item.id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const item of items) expect(item.session_id).toBe(copy.id)
    const messages = items.filter((item) => item.kind === 'message')
    expect(messages.map((item) => item.parent_id)).toEqual([
      null,
      ...messages.slice(0, -1).map((item) => item.id),
    ])
    expect(expectOk(await copy.list({ format: 'gemini' })).items.at(-1)).toEqual(blob)
    expect(expectOk(await copy.tokens())).toEqual(expectOk(await log.tokens()))
    const [from, to] = [expectOk(await api.getSession(log.id)), expectOk(await api.getSession(copy.id))]
    const { user_id, configs, disable_task_tracking, project_id } = from
    expect(to).toMatchObject({ user_id, configs, disable_task_tracking, project_id })
  })

  it('and its original go their own ways', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.batch(mixedEntries(3)), 201)
    const copy = await copied(log)
    expect(expectOk(await copy.addEvent('there')).seq).toBe(4)
    expect(expectOk(await log.addEvent('here')).seq).toBe(4)
    const [message] = (await itemsOf(copy)).filter((item) => item.kind === 'message')
    expectOk(await copy.patchMeta(message!.id, { changed: true }))
    expectOk(await put(copy.id, { changed: true }))
    expect((await itemsOf(log)).map((item) => item.type ?? item.meta)).toEqual([
      { n: 0 },
      'type-1',
      'type-2',
      'here',
    ])
    expect(expectOk(await getConfigs(log.id)).configs).toEqual({})
    const before = await itemsOf(copy)
    expectOk(await api.deleteSession(log.id))
    expect(await itemsOf(copy)).toEqual(before)
    expect(expectOk(await copy.list()).items).toHaveLength(1)
  })

  it("of an empty session is empty, and of an unknown one or another project's is 404", async () => {
    const copy = await copied(await newSessionLog(api))
    expect(await itemsOf(copy)).toEqual([])
    expectError(await sessionLog(api, NOBODYS_ID).copy(), 404, 'session_not_found')
    expectError(await sessionLog(await service.newClient(), copy.id).copy(), 404, 'session_not_found')
  })

  it('is made once with one Idempotency-Key, also 20 times at once', async () => {
    const own = await service.newClient()
    const log = await newSessionLog(own)
    expectOk(await log.addEvent())
    const options = { headers: { 'Idempotency-Key': 'copy' } }
    const answers = await Promise.all(Array.from({ length: 20 }, () => log.copy(options)))
    expectOk(answers[0]!)
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1)
    expect(expectOk(await own.listSessions()).items).toHaveLength(2)
    expectError(await (await newSessionLog(own)).copy(options), 422, 'idempotency_key_reused')
  })

  it('of 5,000 entries is complete', async () => {
    const log = await newSessionLog(api)
    for (let n = 0; n < 5; n += 1) expectOk(await log.batch(mixedEntries(1_000, `b${n}`)), 201)
    const copy = await copied(log)
    const items = await itemsOf(copy)
    expect(items.map((item) => item.seq)).toEqual(items.map((_, index) => index + 1))
    expect(items.map(kept)).toEqual((await itemsOf(log)).map(kept))
    expect(items).toHaveLength(5_000)
    expect(expectOk(await copy.list()).items).toEqual(expectOk(await log.list()).items)
  }, 60_000)

  it('made while others append holds the log up to one seq', async () => {
    const log = await newSessionLog(api)
    expectOk(await log.batch(mixedEntries(1_000)), 201)
    let enough = false
    const appending = Array.from({ length: 4 }, async (_, n) => {
      while (!enough) expectOk(await log.batch(mixedEntries(5, `w${n}`)), 201)
    })
    const copies: SessionLog[] = []
    try {
      for (let n = 0; n < 5; n += 1) copies.push(await copied(log))
    } finally {
      enough = true
      await Promise.all(appending)
    }
    const original = (await itemsOf(log)).map(kept)
    for (const copy of copies) {
      const items = (await itemsOf(copy)).map(kept)
      expect(items.length).toBeGreaterThanOrEqual(1_000)
      expect(items.length % 5).toBe(0)
      expect(items).toEqual(original.slice(0, items.length))
      expect(expectOk(await copy.addEvent()).seq).toBe(items.length + 1)
      const sum = expectOk(await copy.list()).this_time_tokens
      expect(expectOk(await copy.tokens()).total_tokens).toBe(sum)
    }
  }, 60_000)
})
