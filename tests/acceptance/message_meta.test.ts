import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectError, expectOk, NOBODYS_ID } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { type Message, newSessionLog, type SessionLog, sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
let project: Project
let api: ApiClient
let log: SessionLog
let message: Message

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})
beforeEach(async () => {
  log = await newSessionLog(api)
  message = expectOk(await log.add({ role: 'user', content: 'x' }, { meta: { a: 1, b: { c: 2 } } }), 201)
})

const stored = async () => expectOk(await log.list()).metas[0]

describe('a patch of the meta of a message', () => {
  it('merges the top level, and a null deletes its key', async () => {
    expect(expectOk(await log.patchMeta(message.id, { b: { d: 3 }, e: [null] }))).toEqual({
      meta: { a: 1, b: { d: 3 }, e: [null] },
    })
    expect(expectOk(await log.patchMeta(message.id, { a: null, nothing: null }))).toEqual({
      meta: { b: { d: 3 }, e: [null] },
    })
    expect(await stored()).toEqual({ b: { d: 3 }, e: [null] })
    expect(expectOk(await log.patchMeta(message.id, {}))).toEqual({ meta: { b: { d: 3 }, e: [null] } })
  })

  it('keeps every digit of the numbers that it merges and of those that it does not touch', async () => {
    await log.patchMeta(message.id, { a: null, b: null })
    const path = `/api/v1/session/${log.id}/messages/${message.id}/meta`
    await api.request('PATCH', path, { rawBody: '{"meta":{"p":9007199254740993}}' })
    const answer = await api.request('PATCH', path, { rawBody: '{"meta":{"q":0.12345678901234567890}}' })
    expect(exactAt(answer.text, 'data', 'meta')).toEqual(
      exactJson('{"p":9007199254740993,"q":0.12345678901234567890}'),
    )
  })

  it('loses nothing of 20 simultaneous patches of different keys, at two nodes', async () => {
    const node = service.secondNode
    const second = sessionLog(await service.newClient({ token: project.token, node }), log.id)
    const patches = Array.from({ length: 20 }, (_, n) =>
      (n % 2 ? log : second).patchMeta(message.id, { [`k${n}`]: n }),
    )
    for (const answer of await Promise.all(patches)) expectOk(answer)
    const keys = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, n]))
    expect(await stored()).toEqual({ a: 1, b: { c: 2 }, ...keys })
  })

  it('moves updated_at of the message and of its session, and nothing else of the message', async () => {
    const before = expectOk(await api.getSession(log.id))
    expectOk(await log.patchMeta(message.id, { z: 1 }))
    const [item] = expectOk(await log.timeline()).items
    expect((item!.updated_at as string) > message.updated_at).toBe(true)
    const { parts: _parts, ...told } = message
    expect(item).toMatchObject({ ...told, meta: { ...message.meta, z: 1 }, updated_at: item!.updated_at })
    const after = expectOk(await api.getSession(log.id))
    expect(after.updated_at > before.updated_at).toBe(true)
    expect({ ...after, updated_at: '' }).toEqual({ ...before, updated_at: '' })
  })

  it('of an unknown message, of an event and in another session is 404 message_not_found', async () => {
    const event = expectOk(await log.addEvent())
    const other = await newSessionLog(api)
    expectError(await log.patchMeta(NOBODYS_ID, { a: 2 }), 404, 'message_not_found')
    expectError(await log.patchMeta(event.id, { a: 2 }), 404, 'message_not_found')
    expectError(await other.patchMeta(message.id, { a: 2 }), 404, 'message_not_found')
    const nowhere = sessionLog(api, NOBODYS_ID)
    expectError(await nowhere.patchMeta(message.id, { a: 2 }), 404, 'session_not_found')
    expect(await stored()).toEqual({ a: 1, b: { c: 2 } })
  })

  it('by another tenant answers as for a message that nobody has', async () => {
    const stranger = await service.newClient()
    const foreign = await sessionLog(stranger, log.id).patchMeta(message.id, { a: 2 })
    const unknown = await sessionLog(stranger, NOBODYS_ID).patchMeta(NOBODYS_ID, { a: 2 })
    expect([foreign.status, foreign.text]).toEqual([unknown.status, unknown.text])
    const own = await newSessionLog(stranger)
    const reached = await own.patchMeta(message.id, { a: 2 })
    const random = await own.patchMeta(NOBODYS_ID, { a: 2 })
    expect([reached.status, reached.text]).toEqual([random.status, random.text])
    expect(await stored()).toEqual({ a: 1, b: { c: 2 } })
  })

  it('that is no object or is too large is refused and changes nothing', async () => {
    for (const meta of [[], 'x', 7, null, undefined])
      expectError(await log.patchMeta(message.id, meta), 400, 'invalid_request', 'meta')
    expectError(await log.patchMeta(message.id, { x: 'x'.repeat(65_536) }), 413, 'payload_too_large')
    expect(await stored()).toEqual({ a: 1, b: { c: 2 } })
  })

  it('cannot make the meta grow without bound', async () => {
    const statuses: number[] = []
    for (let n = 0; n < 8; n += 1) {
      statuses.push((await log.patchMeta(message.id, { [`k${n}`]: 'x'.repeat(40_000) })).status)
    }
    expect(statuses.at(-1)).toBe(413)
    const keys = statuses.flatMap((status, n) => (status === 200 ? [`k${n}`] : []))
    expect(Object.keys((await stored())!).sort()).toEqual(['a', 'b', ...keys])
    expect(keys.length).toBeGreaterThan(0)
  })
})
