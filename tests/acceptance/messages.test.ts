import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { exactAt, exactJson } from '../harness/exact_json.ts'
import { expectError, expectOk, NOBODYS_ID, TIMESTAMP, UUID } from '../harness/expectations.ts'
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

const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
type Sample = [format: string, role: 'user' | 'assistant', parts: object[], blob: object]
const SAMPLES: Sample[] = [
  [
    'openai',
    'user',
    [{ type: 'text', text: 'Hi' }],
    { role: 'user', content: 'Hi', name: 'ada', x: { y: [null] } },
  ],
  ['openai', 'user', [{ type: 'text', text: 'Be kind' }], { role: 'system', content: 'Be kind' }],
  ['openai', 'user', [{ type: 'text', text: 'Be kind' }], { role: 'developer', content: 'Be kind' }],
  [
    'openai',
    'assistant',
    [{ type: 'tool-call', meta: { id: 'call_1', name: 'f', arguments: '{"a":1}' } }],
    { role: 'assistant', content: null, refusal: null, tool_calls: [call] },
  ],
  [
    'openai',
    'user',
    [{ type: 'tool-result', text: '42', meta: { tool_call_id: 'call_1' } }],
    { role: 'tool', tool_call_id: 'call_1', content: '42' },
  ],
  [
    'openai',
    'user',
    [
      { type: 'text', text: 'See' },
      { type: 'image', meta: { url: 'https://e.com/a.png' } },
    ],
    {
      role: 'user',
      content: [
        { type: 'text', text: 'See' },
        { type: 'image_url', image_url: { url: 'https://e.com/a.png', detail: 'low' } },
      ],
    },
  ],
  ['anthropic', 'user', [{ type: 'text', text: 'Hi' }], { role: 'user', content: 'Hi', x: 1 }],
  [
    'anthropic',
    'assistant',
    [
      { type: 'thinking', text: 'Hm', meta: { signature: 's' } },
      { type: 'redacted_thinking', meta: { data: 'd' } },
      { type: 'tool-call', meta: { id: 'toolu_1', name: 'f' } },
    ],
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1.5 } },
      ],
    },
  ],
  [
    'anthropic',
    'user',
    [{ type: 'tool-result', meta: { tool_call_id: 'toolu_1', is_error: true } }],
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          is_error: true,
          content: [{ type: 'text', text: 'no', cache_control: { type: 'ephemeral' } }],
        },
      ],
    },
  ],
  ['gemini', 'user', [{ type: 'text', text: 'Hi' }], { role: 'user', parts: [{ text: 'Hi', x: true }] }],
  [
    'gemini',
    'assistant',
    [{ type: 'tool-call', meta: { name: 'f' } }],
    { role: 'model', parts: [{ functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'c2ln' }] },
  ],
  [
    'gemini',
    'user',
    [{ type: 'tool-result', meta: { name: 'f' } }],
    { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: '42' } } }] },
  ],
  [
    'acontext',
    'user',
    [{ type: 'text', text: 'Hi' }],
    { role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
  ],
  [
    'acontext',
    'assistant',
    [{ type: 'tool-call', meta: { id: 'c', name: 'f', arguments: '{}' } }],
    {
      role: 'assistant',
      parts: [{ type: 'tool-call', meta: { id: 'c', name: 'f', arguments: '{}', type: 'function' } }],
    },
  ],
  ['responses', 'user', [{ type: 'text', text: 'Hi' }], { role: 'user', content: 'Hi', x: 1.5 }],
  [
    'responses',
    'assistant',
    [{ type: 'tool-call', meta: { id: 'c', name: 'f', arguments: '{' } }],
    { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{', status: 'completed' },
  ],
  [
    'responses',
    'user',
    [{ type: 'tool-result', text: '42', meta: { tool_call_id: 'c' } }],
    { type: 'function_call_output', call_id: 'c', output: '42' },
  ],
  [
    'responses',
    'assistant',
    [{ type: 'data', meta: { data_type: 'web_search_call' } }],
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
  ],
]
/** Contents that say nothing. */
const EMPTY: Array<[string, object]> = [
  ['openai', { role: 'user', content: '' }],
  ['openai', { role: 'user', content: [] }],
  ['openai', { role: 'assistant', content: null }],
  ['openai', { role: 'assistant' }],
  ['openai', { role: 'assistant', content: null, refusal: 'No.' }],
  ['anthropic', { role: 'user', content: '' }],
  ['anthropic', { role: 'assistant', content: [] }],
  ['gemini', { role: 'model', parts: [] }],
  ['gemini', { role: 'model' }],
  ['gemini', { parts: [{ text: 'no role' }] }],
  ['acontext', { role: 'assistant', parts: [] }],
  ['responses', { role: 'user', content: '' }],
  ['responses', { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAAB' }],
  ['responses', { id: 'msg_1' }],
]

describe('a message', () => {
  it.each(SAMPLES)(
    'in %s format becomes a %s message with its parts %j, and comes back as it was sent: %j',
    async (format, role, parts, blob) => {
      const message = expectOk(await log.add(blob, { format }), 201)
      expect(message.role).toBe(role)
      expect(message.parts).toHaveLength(parts.length)
      expect(message.parts).toMatchObject(parts)
      expect(expectOk(await log.list({ format })).items).toEqual([blob])
    },
  )

  it.each(EMPTY)(
    'that says nothing comes back as it was sent, and in every format: %s %j',
    async (format, blob) => {
      expectOk(await log.add(blob, { format }), 201)
      expect(expectOk(await log.list({ format })).items).toEqual([blob])
      for (const other of ['openai', 'anthropic', 'gemini', 'acontext', 'responses'])
        expectOk(await log.list({ format: other }))
    },
  )

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
