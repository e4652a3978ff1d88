import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
let project: Project
let api: ApiClient
let sessionId: string

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

beforeEach(async () => {
  sessionId = expectOk(await api.createSession({}), 201).id
})

const event = { type: 'note', data: {} }
const appendIf = (seq: string, more: Record<string, string> = {}, client = api) =>
  client.appendEvent(sessionId, event, { headers: { 'If-Match': seq, ...more } })

describe('an append with If-Match', () => {
  it('is stored if the last seq of the session is still that', async () => {
    expect(expectOk(await appendIf('"0"')).seq).toBe(1)
    expect(expectOk(await appendIf('"1"')).seq).toBe(2)
    expectOk(await api.appendEvent(sessionId, event))
    expect(expectOk(await appendIf('"3"')).seq).toBe(4)
  })

  it('is 409 seq_conflict if not, names the current seq, and stores nothing', async () => {
    for (let count = 0; count < 3; count += 1) expectOk(await api.appendEvent(sessionId, event))
    for (const seq of ['"0"', '"2"', '"4"', '"9007199254740993"']) {
      const answer = await appendIf(seq)
      expectError(answer, 409, 'seq_conflict')
      expect(answer.json.msg).toMatch(/\b3\b/)
    }
    expect(expectOk(await api.listEvents(sessionId)).items).toHaveLength(3)
  })

  it.each([
    '0',
    'x',
    '"x"',
    '""',
    '"-1"',
    '"1.5"',
    '*',
    'W/"0"',
    '"0',
    '"0", "1"',
    '',
    '" 0"',
    '"0x0"',
    '"1e0"',
  ])('that is malformed is 400 and names the header: %s', async (value) => {
    expectError(await appendIf(value), 400, 'invalid_request', 'If-Match')
    expect(expectOk(await api.listEvents(sessionId)).items).toEqual([])
  })

  it('on a session that does not exist is 404', async () => {
    const answer = await api.appendEvent(NOBODYS_ID, event, { headers: { 'If-Match': '"0"' } })
    expectError(answer, 404, 'session_not_found')
  })

  it('lets exactly one of many simultaneous callers through, at several nodes', async () => {
    const node = service.secondNode
    const second = await service.newClient({ token: project.token, node })
    for (let seq = 0; seq < 5; seq += 1) {
      const calls = Array.from({ length: 20 }, (_, index) =>
        appendIf(`"${seq}"`, {}, index % 2 ? api : second),
      )
      const statuses = (await Promise.all(calls)).map((answer) => answer.status)
      expect(statuses.sort()).toEqual([200, ...Array(19).fill(409)])
    }
    expect(expectOk(await api.listEvents(sessionId)).items.map((item) => item.seq)).toEqual([1, 2, 3, 4, 5])
  })

  it('and unconditional appends beside it: each condition held when it was stored', async () => {
    const unconditional = Array.from({ length: 30 }, () => api.appendEvent(sessionId, event))
    const conditional = Array.from({ length: 30 }, (_, seq) =>
      appendIf(`"${seq}"`).then((answer) => ({ seq, answer })),
    )
    await Promise.all(unconditional)
    for (const { seq, answer } of await Promise.all(conditional)) {
      if (answer.status === 409) continue
      expect(expectOk(answer).seq).toBe(seq + 1)
    }
    const seqs = expectOk(await api.listEvents(sessionId, { limit: 200 })).items.map((item) => item.seq)
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
  })

  it('sent again with the same Idempotency-Key gets the first answer, not a conflict with itself', async () => {
    const first = await appendIf('"0"', { 'Idempotency-Key': 'once' })
    expectOk(first)
    const again = await appendIf('"0"', { 'Idempotency-Key': 'once' })
    expect([again.status, again.text]).toEqual([200, first.text])
    expect(again.headers['idempotent-replayed']).toBe('true')
  })

  it('that conflicted does not use up its Idempotency-Key', async () => {
    expectError(await appendIf('"1"', { 'Idempotency-Key': 'try' }), 409, 'seq_conflict')
    expectOk(await api.appendEvent(sessionId, event))
    expect(expectOk(await appendIf('"1"', { 'Idempotency-Key': 'try' })).seq).toBe(2)
  })
})
