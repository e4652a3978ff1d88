import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
let project: Project
let api: ApiClient
let second: ApiClient
let sessionId: string

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  second = await service.newClient({ token: project.token, node: service.secondNode })
})

beforeEach(async () => {
  sessionId = expectOk(await api.createSession({}), 201).id
})

const event = { type: 'note', data: { text: 'once', n: 1 } }
const appendWith = (key: string, client = api, body: unknown = event, id = sessionId) =>
  client.appendEvent(id, body, { headers: { 'Idempotency-Key': key } })
const storedEvents = async () => expectOk(await api.listEvents(sessionId)).items

describe('an append with an Idempotency-Key', () => {
  it('is stored once: a retry gets the first answer, marked as replayed', async () => {
    const first = await appendWith('retry')
    expectOk(first)
    expect(first.headers['idempotent-replayed']).toBeUndefined()
    expectOk(await api.appendEvent(sessionId, { type: 'other', data: {} }))
    for (const client of [api, second, api]) {
      const again = await appendWith('retry', client)
      expect([again.status, again.text]).toEqual([200, first.text])
      expect(again.headers['idempotent-replayed']).toBe('true')
      expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
    }
    expect(await storedEvents()).toHaveLength(2)
  })

  it('returns every digit in a replay', async () => {
    const options = {
      rawBody: '{"type":"exact","data":{"n":12345678901234567890.123456789}}',
      headers: { 'Idempotency-Key': 'digits' },
    }
    const send = () => api.request('POST', `/api/v1/session/${sessionId}/events`, options)
    const first = await send()
    expect(first.text).toContain('12345678901234567890.123456789')
    expect((await send()).text).toBe(first.text)
  })

  it('and another request is 422, whatever differs', async () => {
    expectOk(await appendWith('reused'))
    const other = expectOk(await api.createSession({}), 201)
    const differing = [
      appendWith('reused', api, { ...event, type: 'other' }),
      appendWith('reused', second, { ...event, data: { text: 'once', n: 2 } }),
      appendWith('reused', api, { ...event, data: { text: 'once', n: '1' } }),
      appendWith('reused', api, event, other.id),
      api.createSession({}, { headers: { 'Idempotency-Key': 'reused' } }),
    ]
    for (const answer of differing) expectError(await answer, 422, 'idempotency_key_reused')
    expect(await storedEvents()).toHaveLength(1)
    expect(expectOk(await api.listEvents(other.id)).items).toEqual([])
  })

  it('shares its keys with no other project', async () => {
    expectOk(await appendWith('common'))
    const others = await service.newClient()
    const theirs = expectOk(await others.createSession({}), 201)
    const answer = await appendWith('common', others, event, theirs.id)
    expectOk(answer)
    expect(answer.headers['idempotent-replayed']).toBeUndefined()
  })

  it('from 50 callers at once is one entry and 50 equal answers', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => appendWith('fifty')))
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1)
    expectOk(answers[0]!)
    expect(answers.filter((answer) => answer.headers['idempotent-replayed'] === undefined)).toHaveLength(1)
    expect(await storedEvents()).toHaveLength(1)
  })

  it('from 50 callers at two nodes is one entry and 50 equal answers, among other appends', async () => {
    const calls = Array.from({ length: 50 }, (_, index) => appendWith('spread', index % 2 ? api : second))
    const others = Array.from({ length: 20 }, (_, index) =>
      (index % 2 ? api : second).appendEvent(sessionId, { type: 'other', data: { index } }),
    )
    const answers = await Promise.all(calls)
    for (const answer of await Promise.all(others)) expectOk(answer)
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1)
    expectOk(answers[0]!)
    const seqs = (await storedEvents()).map((item) => item.seq)
    expect(seqs).toEqual(Array.from({ length: 21 }, (_, index) => index + 1))
  })

  it('from many callers with different bodies stores one; the others are 422', async () => {
    const calls = Array.from({ length: 20 }, (_, n) =>
      appendWith('race', n % 2 ? api : second, { type: 'note', data: { n } }),
    )
    const statuses = (await Promise.all(calls)).map((answer) => answer.status)
    expect(statuses.sort()).toEqual([200, ...Array(19).fill(422)])
    expect(await storedEvents()).toHaveLength(1)
  })

  it('that was refused may be corrected under the same key', async () => {
    expectError(
      await appendWith('corrected', api, { type: 'a', data: { x: '\u0000' } }),
      400,
      'invalid_request',
    )
    expectOk(await appendWith('corrected', api, { type: 'a', data: { x: 'fine' } }))
  })

  it('is remembered after kill -9 of its node', async () => {
    const node = await service.startNode()
    const client = await service.newClient({ token: project.token, node })
    const first = await appendWith('survivor', client)
    expectOk(first)
    await node.kill()
    const again = await appendWith('survivor', second)
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(again.headers['idempotent-replayed']).toBe('true')
  })
})

describe('an Idempotency-Key', () => {
  it('has 1 to 255 characters', async () => {
    expectOk(await appendWith('k'))
    expectOk(await appendWith('k'.repeat(255)))
    expectError(await appendWith(''), 400, 'invalid_request', 'Idempotency-Key')
    expectError(await appendWith('k'.repeat(256)), 400, 'invalid_request', 'Idempotency-Key', '255')
    expect(await storedEvents()).toHaveLength(2)
  })

  it('is compared exactly', async () => {
    expectOk(await appendWith('case'))
    const other = await appendWith('Case')
    expectOk(other)
    expect(other.headers['idempotent-replayed']).toBeUndefined()
    for (const key of ["' OR 1=1 --", '{"a":1}', 'a/b?c=d&e', '%']) expectOk(await appendWith(key))
    expect(await storedEvents()).toHaveLength(6)
  })
})
