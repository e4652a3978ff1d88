import { describe, expect, it } from 'vitest'
import { converted, derivedId, messageId, rendered, storedAs } from './stored_run.js'

const PNG = { media_type: 'image/png', data: 'aGk=' }

describe('Gemini read as others', () => {
  it('has ids for its calls, and the results have the same ones', () => {
    const call = (name: string) => ({ functionCall: { name, args: {} } })
    const answer = (name: string, output: string) => ({ functionResponse: { name, response: { output } } })
    const stored = storedAs('gemini', [
      { role: 'model', parts: [call('a'), call('b'), call('a')] },
      { role: 'user', parts: [answer('b', 'B')] },
      { role: 'user', parts: [answer('a', 'A1'), answer('a', 'A2')] },
    ])
    const results = rendered(stored, 'openai').filter(
      (message) => (message as { role: string }).role === 'tool',
    )
    expect(results).toEqual([
      { role: 'tool', tool_call_id: derivedId(0, 1), content: 'B' },
      { role: 'tool', tool_call_id: derivedId(0, 0), content: 'A1' },
      { role: 'tool', tool_call_id: derivedId(0, 2), content: 'A2' },
    ])
  })

  it('gives a result without id to the call that has one, and one with an id to the call that has none', () => {
    const stored = storedAs('gemini', [
      { role: 'model', parts: [{ functionCall: { id: 'fc_1', name: 'a' } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'a', response: { output: '1' } } }] },
      { role: 'model', parts: [{ functionCall: { name: 'a' } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'fc_2', name: 'a', response: { output: '2' } } }] },
    ])
    expect(rendered(stored, 'openai')).toMatchObject([
      { tool_calls: [{ id: 'fc_1' }] },
      { tool_call_id: 'fc_1', content: '1' },
      { tool_calls: [{ id: derivedId(2, 0) }] },
      { tool_call_id: derivedId(2, 0), content: '2' },
    ])
  })

  it('answers the latest call of the name, where an earlier one never was answered', () => {
    const call = { role: 'model', parts: [{ functionCall: { name: 'a' } }] }
    const answer = { role: 'user', parts: [{ functionResponse: { name: 'a', response: {} } }] }
    const stored = storedAs('gemini', [call, { role: 'user', parts: [{ text: 'Stop' }] }, call, answer])
    expect(rendered(stored, 'openai')[3]).toMatchObject({ tool_call_id: derivedId(2, 0) })
  })

  it('leaves out of Anthropic what only Gemini may think or fetch', () => {
    const parts = [
      { text: 'Hm', thought: true, thoughtSignature: 'c2ln' },
      { executableCode: { code: '1+1' } },
      {
        fileData: {
          fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x',
          mimeType: 'image/png',
        },
      },
      { text: 'Two' },
    ]
    expect(converted('gemini', 'anthropic', { role: 'model', parts })).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'Two' }] },
    ])
  })
})

describe('the neutral form', () => {
  it('brings back the role, the name, a custom tool’s call and a refusal to OpenAI', () => {
    const blobs = [
      { role: 'developer', content: 'Be brief.', name: 'Ada' },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'run', input: 'print(1)' } }],
      },
    ]
    expect(converted('acontext', 'openai', ...converted('openai', 'acontext', ...blobs))).toEqual(blobs)
  })

  it('brings back signatures, cache marks and images in results to Anthropic', () => {
    const blobs = [
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
          { type: 'redacted_thinking', data: 'eHl6' },
          { type: 'text', text: 'Wait', cache_control: { type: 'ephemeral', ttl: '5m' } },
          { type: 'tool_use', id: 'toolu_1', name: 'shoot', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [
              { type: 'text', text: 'Done' },
              { type: 'image', source: { type: 'base64', ...PNG } },
            ],
          },
          { type: 'document', source: { type: 'file', file_id: 'file_1' }, title: 'A' },
        ],
      },
    ]
    expect(converted('acontext', 'anthropic', ...converted('anthropic', 'acontext', ...blobs))).toEqual(blobs)
  })

  it('brings back thoughts and signatures to Gemini', () => {
    const blobs = [
      {
        role: 'model',
        parts: [
          { text: 'Hm', thought: true, thoughtSignature: 'c2ln' },
          { functionCall: { id: 'fc_1', name: 'a', args: {} }, thoughtSignature: 'c2lo' },
          { text: '', thoughtSignature: 'c2lp' },
        ],
      },
    ]
    expect(converted('acontext', 'gemini', ...converted('gemini', 'acontext', ...blobs))).toEqual(blobs)
  })
})

describe('a session of several formats', () => {
  it('ties a result in one format to its call in another', () => {
    const run = [
      {
        format: 'anthropic',
        id: messageId(0),
        blob: { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'a', input: {} }] },
      },
      {
        format: 'gemini',
        id: messageId(1),
        blob: { role: 'user', parts: [{ functionResponse: { name: 'a', response: { output: 'A' } } }] },
      },
    ] as const
    expect(rendered(run, 'openai')).toMatchObject([{ tool_calls: [{ id: 't1' }] }, { tool_call_id: 't1' }])
    expect(rendered(run, 'gemini')[1]).toBe(run[1].blob)
  })

  it('shows a blob that is no message as an empty one', () => {
    const run = [{ format: 'openai', id: messageId(0), blob: 'damaged' }] as const
    expect(rendered(run, 'gemini')).toEqual([{ role: 'user', parts: [{ text: '(no content)' }] }])
  })
})
