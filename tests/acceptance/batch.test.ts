import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { mixedEntries, newSessionLog, type SessionLog, sessionLog } from '../harness/session_log.ts'
import { walkPages } from '../harness/walk_pages.ts'

const service = useSharedService()
let project: Project
let api: ApiClient
let log: SessionLog

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})
beforeEach(async () => {
  log = await newSessionLog(api)
})

const event = (more: object = {}) => ({ kind: 'event', type: 'note', data: {}, ...more })
const message = (more: object = {}) => ({ kind: 'message', blob: { role: 'user', content: 'x' }, ...more })
const stored = () => walkPages((cursor) => log.timeline({ limit: 200, cursor }))
const range = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index)

describe('a batch', () => {
  it('of 1,000 mixed entries gets consecutive seqs in its order', async () => {
    expectOk(await log.addEvent('ahead'))
    const { items } = expectOk(await log.batch(mixedEntries(1_000)), 201)
    expect(items.map((item) => item.seq)).toEqual(range(2, 1_000))
    expect(items.map((item) => (item.kind === 'message' ? item.meta : item.data))).toEqual(
      range(0, 1_000).map((n) => ({ n })),
    )
    expect((await stored()).slice(1)).toEqual(items)
    expect(expectOk(await log.addEvent('behind')).seq).toBe(1_002)
  })

  it('of 1,001 entries or of none, or that is no list, is 400 and stores nothing', async () => {
    for (const entries of [Array(1_001).fill(event()), [], {}, 'x', null, undefined]) {
      expectError(await log.batch(entries), 400, 'invalid_request', 'entries')
    }
    expectError(
      await log.batch([event()], { body: { entries: [event()], surprise: 1 } }),
      400,
      'invalid_request',
      'surprise',
    )
    expect(await stored()).toEqual([])
  })

  it('holds messages of every format, which come back whole', async () => {
    const blob = { role: 'model', parts: [{ functionCall: { name: 'f', args: {} }, x: 1 }] }
    expectOk(await log.batch([message({ blob, format: 'gemini', meta: { a: 1 } }), event()]), 201)
    const page = expectOk(await log.list({ format: 'gemini' }))
    expect([page.items, page.metas]).toEqual([[blob], [{ a: 1 }]])
  })

  it('keeps every digit of its numbers', async () => {
    const data = '{"a":12345678901234567890123,"b":1.50}'
    const rawBody = `{"entries":[{"kind":"event","type":"t","data":${data}}]}`
    const answer = await api.request('POST', `/api/v1/session/${log.id}/entries`, { rawBody })
    expectOk(answer, 201)
    const [item] = exactAt(answer.text, 'data', 'items') as Array<Record<string, unknown>>
    expect(item!.$data).toEqual(exactJson(data))
  })

  const sameId = randomUUID()
  const bad: Array<[what: string, field: string, entries: unknown[]]> = [
    ['an event without a type', 'type', [event({ type: undefined })]],
    ['an event without data', 'data', [event({ data: undefined })]],
    ['an empty type', 'type', [event({ type: '' })]],
    ['no blob', 'blob', [message({ blob: undefined })]],
    ['a blob that is no message', 'blob/role', [message({ blob: { role: 'x', content: 'x' } })]],
    ['an unknown format', 'format', [message({ format: 'x' })]],
    ['an unknown kind', 'kind', [event({ kind: 'note' })]],
    ['no kind', 'kind', [event({ kind: undefined })]],
    ['an unknown field', 'surprise', [event({ surprise: 1 })]],
    ['a field of the other kind', 'meta', [event({ meta: {} })]],
    ['an id that is no uuid', 'id', [event({ id: 'x' })]],
    ['an entry that is no object', '', [7]],
    ['a lone surrogate', 'data', [event({ data: { x: '\ud800' } })]],
    ['an id that stands twice', 'id', [event({ id: sameId }), event({ id: sameId, type: 'other' })]],
  ]
  it.each(bad)(
    'with %s is 400, names the index and %s, and stores nothing',
    async (_what, field, entries) => {
      const answer = await log.batch([event(), message(), ...entries, event()])
      expectError(answer, 400, 'invalid_request', field)
      expect(answer.json.msg).toMatch(new RegExp(`\\b${1 + entries.length}\\b`))
      expect(await stored()).toEqual([])
    },
  )

  it('with a message meta over 64 KiB is 413, names the index and stores nothing', async () => {
    const answer = await log.batch([event(), message({ meta: { x: 'x'.repeat(65_536) } })])
    expectError(answer, 413, 'payload_too_large', '1')
    expect(await stored()).toEqual([])
  })

  it('for an unknown session is 404', async () => {
    expectError(await sessionLog(api, NOBODYS_ID).batch([event()]), 404, 'session_not_found')
  })
})

describe('an entry with its own id', () => {
  it('that is sent again is answered as it is stored, alone and among new ones', async () => {
    const [first, second] = [event({ id: randomUUID() }), message({ id: randomUUID() })]
    const { items } = expectOk(await log.batch([first, second]), 201)
    expect(items.map((item) => item.id)).toEqual(
      [first, second].map((entry) => (entry as unknown as { id: string }).id),
    )
    expect(expectOk(await log.batch([first]), 201).items).toEqual([items[0]])
    const mixed = expectOk(await log.batch([event(), second, message(), first, event()]), 201).items
    expect(mixed.map((item) => item.seq)).toEqual([3, 2, 4, 1, 5])
    expect([mixed[1], mixed[3]]).toEqual([items[1], items[0]])
    expect((await stored()).map((item) => item.seq)).toEqual([1, 2, 3, 4, 5])
  })

  it('and other content, meta or format is 422, names the index and stores nothing', async () => {
    const ids = [randomUUID(), randomUUID()]
    expectOk(await log.batch([event({ id: ids[0] }), message({ id: ids[1], meta: { a: 1 } })]), 201)
    const others = [
      event({ id: ids[0], type: 'other' }),
      event({ id: ids[0], data: { x: 1 } }),
      message({ id: ids[0] }),
      message({ id: ids[1], meta: { a: 2 } }),
      message({ id: ids[1], meta: { a: 1 }, blob: { role: 'user', content: 'y' } }),
      message({ id: ids[1], meta: { a: 1 }, format: 'anthropic' }),
    ]
    for (const other of others) {
      const answer = await log.batch([event(), event(), other, event()])
      expect(answer.status, answer.text).toBe(422)
      expect(answer.json.msg, JSON.stringify(other)).toMatch(/\b2\b/)
    }
    expect(await stored()).toHaveLength(2)
  })

  it('is stored once when 20 callers send it at once', async () => {
    const entries = [event({ id: randomUUID() }), message({ id: randomUUID() })]
    const answers = await Promise.all(Array.from({ length: 20 }, () => log.batch(entries)))
    const items = answers.map((answer) => expectOk(answer, 201).items)
    for (const other of items) expect(other).toEqual(items[0])
    expect(await stored()).toEqual(items[0])
  })

  it('may be used by another session and another project', async () => {
    const entry = event({ id: randomUUID() })
    const strangers = await newSessionLog(await service.newClient())
    const outcomes = [await log.batch([entry]), await strangers.batch([entry])]
    for (const answer of outcomes) expect(expectOk(answer, 201).items[0]!.seq).toBe(1)
  })
})

describe('a batch with conditions', () => {
  it('and Idempotency-Key is stored once and answered alike, also 30 times at once', async () => {
    const options = { headers: { 'Idempotency-Key': 'batch' } }
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => log.batch([event(), message()], options)),
    )
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1)
    expect(answers.filter((answer) => answer.headers['idempotent-replayed'] === 'true')).toHaveLength(29)
    expect(await stored()).toEqual(expectOk(answers[0]!, 201).items)
    expectError(await log.batch([event()], options), 422, 'idempotency_key_reused')
  })

  it('and If-Match is stored only if the last seq is still that', async () => {
    const at = (seq: number) => ({ headers: { 'If-Match': `"${seq}"` } })
    expectOk(await log.batch([event(), event()], at(0)), 201)
    expectError(await log.batch([event(), event()], at(1)), 409, 'seq_conflict', '2')
    expect(expectOk(await log.batch([event()], at(2)), 201).items[0]!.seq).toBe(3)
    expect(await stored()).toHaveLength(3)
  })

  it('beside other batches at two nodes stays in one piece, and the log without gaps', async () => {
    const node = service.secondNode
    const second = sessionLog(await service.newClient({ token: project.token, node }), log.id)
    const batches = await Promise.all(
      range(0, 24).map((n) => (n % 2 ? log : second).batch(mixedEntries(10 + n, `b${n}`))),
    )
    for (const answer of batches) {
      const seqs = expectOk(answer, 201).items.map((item) => item.seq)
      expect(seqs).toEqual(range(seqs[0]!, seqs.length))
    }
    const items = await stored()
    expect(items.map((item) => item.seq)).toEqual(range(1, items.length))
    expect(items).toHaveLength(range(10, 24).reduce((sum, count) => sum + count, 0))
  })
})
