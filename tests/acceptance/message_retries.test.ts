import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'

const service = useSharedService()
let api: ApiClient
let log: SessionLog

beforeAll(async () => {
  api = await service.newClient()
})
beforeEach(async () => {
  log = await newSessionLog(api)
})

const retry = (key: string, more: Record<string, string> = {}) => ({
  headers: { 'Idempotency-Key': key, ...more },
})
describe('a message with Idempotency-Key', () => {
  const blob = { role: 'user', content: 'once' }

  it('is answered again as at first, to the byte, even after its meta was patched', async () => {
    const first = await log.add(blob, { meta: { a: 1 } }, retry(`k ${log.id}`))
    const { id } = expectOk(first, 201)
    expectOk(await log.patchMeta(id, { a: 2, b: 3 }))
    const again = await log.add(blob, { meta: { a: 1 } }, retry(`k ${log.id}`))
    expect([again.status, again.text, again.headers['idempotent-replayed']]).toEqual([
      201,
      first.text,
      'true',
    ])
    expect(expectOk(await log.list()).metas).toEqual([{ a: 2, b: 3 }])
  })

  it('and another blob, format or meta is 422', async () => {
    expectOk(await log.add(blob, {}, retry(`k ${log.id}`)), 201)
    for (const [other, more] of [
      [{ ...blob, content: 'x' }, {}],
      [blob, { format: 'anthropic' }],
      [blob, { meta: { a: 1 } }],
    ] as const)
      expectError(await log.add(other, more, retry(`k ${log.id}`)), 422, 'idempotency_key_reused')
  })

  it('sent 50 times at once is one message and returns 50 equal answers', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => log.add(blob, {}, retry(`storm ${log.id}`))),
    )
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size).toBe(1)
    expectOk(answers[0]!, 201)
    expect(answers.filter((answer) => answer.headers['idempotent-replayed'] === 'true')).toHaveLength(49)
    expect(expectOk(await log.list()).items).toEqual([blob])
  })

  it('and If-Match is stored only if the last seq is still that, and does not conflict with itself', async () => {
    expectOk(await log.addEvent())
    expectError(await log.add(blob, {}, { headers: { 'If-Match': '"0"' } }), 409, 'seq_conflict', '1')
    const first = await log.add(blob, {}, retry(`m ${log.id}`, { 'If-Match': '"1"' }))
    expect(expectOk(first, 201).seq).toBe(2)
    expect((await log.add(blob, {}, retry(`m ${log.id}`, { 'If-Match': '"1"' }))).text).toBe(first.text)
    expect(expectOk(await log.list()).items).toHaveLength(1)
  })
})
