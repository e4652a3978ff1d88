import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
import { EMPTY_MESSAGES, SAMPLE_MESSAGES } from '../harness/sample_messages.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { type Message, newSessionLog, type SessionLog } from '../harness/session_log.ts'

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

/** What a list shows of a message in its own format: the blob; in the neutral form with all that the message has. */
const listed = (format: string, blob: object, message: Message) =>
  format === 'acontext' ? { ...message, ...blob } : blob

describe('a message', () => {
  it.each(SAMPLE_MESSAGES)(
    'in %s format becomes a %s message with its parts %j, and comes back as it was sent: %j',
    async (format, role, parts, blob) => {
      const message = expectOk(await log.add(blob, { format }), 201)
      expect(message.role).toBe(role)
      expect(message.parts).toHaveLength(parts.length)
      expect(message.parts).toMatchObject(parts)
      expect(expectOk(await log.list({ format })).items).toEqual([listed(format, blob, message)])
    },
  )

  it.each(EMPTY_MESSAGES)(
    'that says nothing comes back as it was sent, and in every format: %s %j',
    async (format, blob) => {
      const message = expectOk(await log.add(blob, { format }), 201)
      expect(expectOk(await log.list({ format })).items).toEqual([listed(format, blob, message)])
      for (const other of ['openai', 'anthropic', 'gemini', 'acontext', 'responses'])
        expectOk(await log.list({ format: other }))
    },
  )

  it('that only configures its own model is on no page of another format, which is whole all the same', async () => {
    await log.add({ type: 'configuration_update', reasoning: { effort: 'low' } }, { format: 'responses' })
    const said = expectOk(await log.add({ role: 'user', content: 'Hi' }), 201)
    await log.add({ type: 'compaction_trigger' }, { format: 'responses' })
    for (const query of [{ format: 'openai' }, { format: 'openai', time_desc: true }]) {
      const page = expectOk(await log.list(query))
      expect(page.items).toEqual([{ role: 'user', content: 'Hi' }])
      expect([page.ids, page.metas]).toEqual([[said.id], [{}]])
    }
    const first = expectOk(await log.list({ format: 'openai', limit: 1 }))
    expect(first).toMatchObject({ items: [], ids: [], metas: [], has_more: true })
    expect(expectOk(await log.list({ format: 'responses' })).items).toHaveLength(3)
  })

  it('is a whole one in the neutral form, whatever was stored: its own fields, its meta, and what its parts say', async () => {
    const system = { role: 'system', content: 'Be kind', name: 'ops' }
    const first = expectOk(await log.add(system, { meta: { n: 1, name: 'caller' } }), 201)
    const parts = [{ type: 'text', text: 'Hi' }]
    const claimed = { role: 'user', parts, id: NOBODYS_ID, seq: 7, created_at: 'then', x: 1, meta: { n: 3 } }
    const second = expectOk(await log.add(claimed, { format: 'acontext', meta: { n: 2, m: 2 } }), 201)
    const { meta } = expectOk(await log.patchMeta(second.id, { p: [null] }))
    const page = expectOk(await log.list({ format: 'acontext' }))
    const [shown, other] = page.items
    expect(shown).toEqual({ ...first, meta: { n: 1, name: 'ops', provider_role: 'system' } })
    expect(other).toEqual({
      ...{ ...second, parts, x: 1 },
      meta: { ...meta, n: 3 },
      updated_at: expect.stringMatching(TIMESTAMP),
    })
    expect(other!.updated_at).not.toBe(second.updated_at)
    expect(page.metas).toEqual([first.meta, meta])
    const copy = await newSessionLog(api)
    for (const blob of page.items) expectOk(await copy.add(blob, { format: 'acontext' }), 201)
    expect(expectOk(await copy.list()).items[0]).toEqual(system)
  })

  it('keeps every digit of its numbers, in the blob and in its meta', async () => {
    const blob =
      '{"role":"user","content":"n","a":12345678901234567890123,"b":0.1000000000000000055511151231257827}'
    const meta = '{"big":9007199254740993,"small":1.50}'
    const rawBody = `{"blob":${blob},"meta":${meta}}`
    const added = await api.request<Message>('POST', `/api/v1/session/${log.id}/messages`, { rawBody })
    expectOk(added, 201)
    expect(exactAt(added.text, 'data', 'meta')).toEqual(exactJson(meta))
    const listed = await log.list()
    expect(exactAt(listed.text, 'data', 'items')).toEqual([exactJson(blob)])
    expect(exactAt(listed.text, 'data', 'metas')).toEqual([exactJson(meta)])
  })

  it('has every field of its shape, and names the message before it', async () => {
    const first = expectOk(await log.add({ role: 'user', content: 'A' }, { meta: { k: [1] } }), 201)
    expect(first).toEqual({
      id: expect.stringMatching(UUID),
      session_id: log.id,
      parent_id: null,
      role: 'user',
      meta: { k: [1] },
      parts: [expect.objectContaining({ type: 'text', text: 'A' })],
      task_id: null,
      session_task_process_status: 'pending',
      created_at: expect.stringMatching(TIMESTAMP),
      updated_at: expect.stringMatching(TIMESTAMP),
      seq: 1,
    })
    expectOk(await log.addEvent())
    const second = expectOk(await log.add({ role: 'assistant', content: 'B' }), 201)
    expect(second).toMatchObject({ parent_id: first.id, seq: 3, meta: {} })
    const { items } = expectOk(
      await log.batch([
        { kind: 'event', type: 'x', data: {} },
        { kind: 'message', blob: { role: 'user', content: 'C' } },
        { kind: 'message', blob: { role: 'user', content: 'D' } },
      ]),
      201,
    )
    expect(items[1]).toMatchObject({ parent_id: second.id, seq: 5 })
    expect(items[2]).toMatchObject({ parent_id: items[1]!.id, seq: 6 })
  })

  it('says disable_tracking in a session that disables task tracking', async () => {
    const quiet = await newSessionLog(api, { disable_task_tracking: true })
    const message = expectOk(await quiet.add({ role: 'user', content: 'A' }), 201)
    expect(message.session_task_process_status).toBe('disable_tracking')
  })

  it('is an openai one if no format is named', async () => {
    expectOk(await log.add({ role: 'tool', tool_call_id: 'c', content: 'r' }), 201)
    expect(expectOk(await log.list()).items).toEqual([{ role: 'tool', tool_call_id: 'c', content: 'r' }])
    expectError(await log.add({ role: 'model', parts: [{ text: 'x' }] }), 400, 'invalid_request', '/blob')
  })

  it('for an unknown session is 404', async () => {
    const body = { blob: { role: 'user', content: 'x' } }
    const path = `/api/v1/session/${NOBODYS_ID}/messages`
    expectError(await api.request('POST', path, { body }), 404, 'session_not_found')
    expectError(await api.request('GET', path), 404, 'session_not_found')
  })

  it('with a meta over 64 KiB is 413, with an unknown format or field 400, and nothing is stored', async () => {
    const blob = { role: 'user', content: 'x' }
    expectError(await log.add(blob, { meta: { x: 'x'.repeat(65_536) } }), 413, 'payload_too_large')
    expectError(await log.add(blob, { format: 'cohere' }), 400, 'invalid_request', 'format')
    expectError(await log.add(blob, { surprise: 1 }), 400, 'invalid_request', 'surprise')
    expectError(await log.add(blob, { meta: [] }), 400, 'invalid_request', 'meta')
    expectError(await log.add('x'), 400, 'invalid_request', 'blob')
    expectError(await log.add(undefined), 400, 'invalid_request', 'blob')
    expect(expectOk(await log.list()).items).toEqual([])
  })
})
