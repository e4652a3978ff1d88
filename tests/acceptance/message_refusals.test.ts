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

const fn = (more: object) => ({ role: 'assistant', tool_calls: [{ id: 'c', type: 'function', ...more }] })
describe('a blob that is no message of its format', () => {
  it.each([
    ['openai', '/blob/role', {}],
    ['openai', '/blob/role', { role: 'model', content: 'x' }],
    ['openai', '/blob/content', { role: 'user' }],
    ['openai', '/blob/content', { role: 'user', content: 7 }],
    ['openai', '/blob/content', { role: 'user', content: null }],
    ['openai', '/blob/content/1', { role: 'user', content: [{ type: 'text', text: 'x' }, 7] }],
    ['openai', '/blob/content/0/text', { role: 'user', content: [{ type: 'text', text: 7 }] }],
    ['openai', '/blob/tool_call_id', { role: 'tool', content: 'x' }],
    ['openai', '/blob/tool_calls/0/function', fn({})],
    ['openai', '/blob/tool_calls/0/function/name', fn({ function: { arguments: '{}' } })],
    ['openai', '/blob/tool_calls/0/function/arguments', fn({ function: { name: 'f', arguments: {} } })],
    ['anthropic', '/blob/role', { role: 'tool', content: 'x' }],
    ['anthropic', '/blob/content', { role: 'user' }],
    ['anthropic', '/blob/content/0/type', { role: 'user', content: [{ text: 'x' }] }],
    [
      'anthropic',
      '/blob/content/0/input',
      { role: 'assistant', content: [{ type: 'tool_use', id: 'i', name: 'f' }] },
    ],
    [
      'anthropic',
      '/blob/content/0/tool_use_id',
      { role: 'user', content: [{ type: 'tool_result', content: 'x' }] },
    ],
    ['gemini', '/blob/parts', { role: 'user', parts: 'x' }],
    ['gemini', '/blob/parts/0', { role: 'user', parts: ['x'] }],
    ['gemini', '/blob/parts/0/text', { role: 'user', parts: [{ text: 7 }] }],
    ['acontext', '/blob/role', { role: 'tool', parts: [] }],
    ['acontext', '/blob/parts', { role: 'user' }],
    ['acontext', '/blob/parts/0/type', { role: 'user', parts: [{ text: 'x' }] }],
    ['acontext', '/blob/parts/0/type', { role: 'user', parts: [{ type: 'surprise' }] }],
    ['responses', '/blob', [{ role: 'user', content: 'x' }]],
    ['responses', '/blob/type', {}],
    ['responses', '/blob/role', { role: 'tool', content: 'x' }],
    ['responses', '/blob/content/0/text', { role: 'user', content: [{ type: 'input_text' }] }],
    ['responses', '/blob/call_id', { type: 'function_call', name: 'f', arguments: '{}' }],
    ['responses', '/blob/output', { type: 'function_call_output', call_id: 'c', output: 7 }],
  ])('(%s) is 400 and names %s: %j', async (format, field, blob) => {
    expectError(await log.add(blob, { format }), 400, 'invalid_request', field)
    expect(expectOk(await log.list({ format })).items).toEqual([])
  })

  it('is refused in a sentence', async () => {
    const { json } = await log.add({ role: 'user' })
    const why = 'it is required and must be a string or an array of content parts.'
    expect(json.msg).toBe(`/blob/content is invalid in a message of openai format: ${why}`)
  })
})
