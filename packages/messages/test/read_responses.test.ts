import { describe, expect, it } from 'vitest'
import { readMessage } from '../src/index.js'
import { parseJson, writeJson } from '../src/json/index.js'
import { itemKind } from '../src/response_items.js'
import { refusalOf } from './refusal_of.js'
import { ITEM_VECTORS } from './response_items.js'
import { converted, rendered, storedAs } from './stored_run.js'

describe('an item of the Responses API', () => {
  it.each(ITEM_VECTORS)('has a role and parts: $name', ({ item, role, parts }) => {
    const message = readMessage('responses', item)
    expect(message.role).toBe(role)
    expect(message.parts).toEqual(parts)
  })

  it.each(ITEM_VECTORS)('is read in other formats: $name', ({ item, openai, anthropic, gemini }) => {
    expect(converted('responses', 'openai', item)).toEqual(openai)
    expect(converted('responses', 'anthropic', item)).toEqual(anthropic)
    expect(converted('responses', 'gemini', item)).toEqual(gemini)
  })

  it('of which nothing but data is read is of a type that is known as such', () => {
    const types = ITEM_VECTORS.flatMap(({ parts: [first] }) =>
      first?.type === 'data' ? [first.meta.data_type] : [],
    )
    expect(types.length).toBeGreaterThan(20)
    expect(types.filter((type) => itemKind(type) === undefined)).toEqual([])
  })

  it('that no one knows yet is kept: an output as the caller’s, anything else as the model’s', () => {
    const item = { type: 'dream_call', id: 'd_1', dream: { depth: 3 } }
    expect(readMessage('responses', item)).toMatchObject({
      role: 'assistant',
      parts: [{ type: 'data', meta: { data_type: 'dream_call', id: 'd_1', dream: { depth: 3 } } }],
    })
    expect(readMessage('responses', { type: 'dream_call_output' }).role).toBe('user')
  })

  it('keeps content that no one knows as data, and every digit of its numbers', () => {
    const content = [{ type: 'input_video', length: 12345678901234567890n.toString() }]
    const item = parseJson(writeJson({ role: 'user', content }).replace(/"(\d{20})"/, '$1'))
    const [part] = readMessage('responses', item).parts
    expect(writeJson(part)).toContain('"length":12345678901234567890')
    expect(part).toMatchObject({ type: 'data', meta: { data_type: 'input_video' } })
  })

  it('is one message of the model together with the other items of its turn', () => {
    const said = { type: 'message', role: 'assistant', content: 'Let me look.' }
    const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'look', arguments: '{}' })
    const turn = [{ type: 'reasoning', id: 'rs_1', summary: [] }, said, call('a'), call('b')]
    const called = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })
    expect(converted('responses', 'openai', turn)).toEqual([
      { role: 'assistant', content: 'Let me look.', tool_calls: [called('a'), called('b')] },
    ])
    expect(refusalOf('responses', [said, { ...call('a'), name: 7 }])).toBe('/1/name must be a string')
    expect(refusalOf('responses', [said, { role: 'tool' }])).toMatch('/1/role must be one of')
  })

  it.each(['tool', 'critic', 'discriminator', 'unknown'])('has the role %s in a conversation', (role) => {
    const item = {
      type: 'message',
      id: 'm',
      role,
      status: 'completed',
      content: [{ type: 'text', text: 'x' }],
    }
    const read = readMessage('responses', item)
    expect(read).toMatchObject({ role: 'user', provider_role: role, parts: [{ type: 'text', text: 'x' }] })
    expect(converted('responses', 'openai', item)).toEqual([{ role: 'user', content: 'x' }])
  })

  it('belongs to the call of its name, or to the oldest open one, if it names no call', () => {
    const call = (call_id: string, name: string) => ({ type: 'function_call', call_id, name })
    const run = storedAs('responses', [
      call('a', 'f'),
      call('b', 'g'),
      call('c', 'h'),
      { type: 'function_call_output', name: 'g', output: '1' },
      { type: 'function_call_output', call_id: null, output: '2' },
    ])
    expect(rendered(run, 'openai').slice(3)).toEqual([
      { role: 'tool', tool_call_id: 'b', content: '1' },
      { role: 'tool', tool_call_id: 'a', content: '2' },
    ])
  })

  it('has the sound that a user sends', () => {
    const input_audio = { data: 'aGk=', format: 'wav' }
    const item = { role: 'user', content: [{ type: 'input_audio', input_audio }] }
    expect(readMessage('responses', item).parts).toMatchObject([{ type: 'audio', meta: input_audio }])
  })

  it.each([
    ['nothing', {}, '/type is required, except of a message, which has a `role`'],
    ['no object', 'Hello', ' must be an object'],
    ['a type that is no text', { type: 7 }, '/type must be a string'],
    [
      'a role of another format',
      { role: 'tool', content: '' },
      '/role must be one of user, assistant, system, developer',
    ],
    [
      'no content',
      { role: 'user' },
      '/content is required and must be a string or an array of content parts',
    ],
    [
      'content without a type',
      { role: 'user', content: [{ text: 'x' }] },
      '/content/0/type is required and must be a string',
    ],
    [
      'content that is no text',
      { role: 'user', content: [{ type: 'input_text' }] },
      '/content/0/text is required and must be a string',
    ],
    [
      'an image in an object',
      { role: 'user', content: [{ type: 'input_image', image_url: { url: 'x' } }] },
      '/content/0/image_url must be a string',
    ],
    [
      'a call without an id',
      { type: 'function_call', name: 'f', arguments: '{}' },
      '/call_id is required and must be a string',
    ],
    [
      'a call without a name',
      { type: 'function_call', call_id: 'c', arguments: '{}' },
      '/name is required and must be a string',
    ],
    [
      'arguments that are no text',
      { type: 'function_call', call_id: 'c', name: 'f', arguments: {} },
      '/arguments must be a string',
    ],
    [
      'a custom call whose input is no text',
      { type: 'custom_tool_call', call_id: 'c', name: 'f', input: {} },
      '/input must be a string',
    ],
    [
      'an output of a call whose id is no text',
      { type: 'function_call_output', call_id: 7, output: '' },
      '/call_id must be a string',
    ],
    [
      'no output',
      { type: 'function_call_output', call_id: 'c' },
      '/output is required and must be a string or an array of content parts',
    ],
    ['a summary that is no list', { type: 'reasoning', id: 'r', summary: 'x' }, '/summary must be an array'],
    [
      'a summary without a text',
      { type: 'reasoning', id: 'r', summary: [{}] },
      '/summary/0/text is required and must be a string',
    ],
  ])('is refused by its place: %s', (_, item, refusal) => {
    expect(refusalOf('responses', item)).toBe(refusal)
  })
})

describe('a message of another format', () => {
  it('is several items where it says, thinks and calls several things', () => {
    const reply = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
        { type: 'text', text: 'Let me look.' },
        { type: 'tool_use', id: 't1', name: 'search', input: { q: 1 } },
        { type: 'tool_use', id: 't2', name: 'shoot', input: {} },
      ],
    }
    const results = {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 't1', content: 'found', is_error: true },
        {
          type: 'tool_result',
          tool_use_id: 't2',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }],
        },
        { type: 'text', text: 'And now?' },
      ],
    }
    expect(converted('anthropic', 'responses', reply, results)).toEqual([
      { type: 'message', role: 'assistant', content: 'Let me look.' },
      { type: 'function_call', call_id: 't1', name: 'search', arguments: '{"q":1}' },
      { type: 'function_call', call_id: 't2', name: 'shoot', arguments: '{}' },
      { type: 'function_call_output', call_id: 't1', output: 'found', status: 'incomplete' },
      {
        type: 'function_call_output',
        call_id: 't2',
        output: [{ type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,aGk=' }],
      },
      { type: 'message', role: 'user', content: 'And now?' },
    ])
  })

  it('has files and instructions where the Responses API has them, and text where it has no place for the rest', () => {
    const blobs = [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Be' },
          { type: 'text', text: 'brief.' },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: '' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
          { type: 'file', file: { file_id: 'file-1' } },
          { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
        ],
      },
      { role: 'assistant', content: null, refusal: 'No.', audio: { id: 'audio_1', transcript: 'Hi' } },
      { role: 'assistant', content: '' },
    ]
    expect(converted('openai', 'responses', ...blobs)).toEqual([
      {
        type: 'message',
        role: 'developer',
        content: [
          { type: 'input_text', text: 'Be' },
          { type: 'input_text', text: 'brief.' },
        ],
      },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_image', detail: 'low', image_url: 'https://example.com/a.png' },
          { type: 'input_file', file_id: 'file-1' },
        ],
      },
      { type: 'message', role: 'assistant', content: 'No.' },
      { type: 'message', role: 'assistant', content: 'Hi' },
      { type: 'message', role: 'assistant', content: '' },
    ])
    const linked = { role: 'user', parts: [{ fileData: { fileUri: 'https://example.com/b.pdf' } }] }
    expect(converted('gemini', 'responses', linked)).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_file', file_url: 'https://example.com/b.pdf' }],
      },
    ])
  })

  it('in the neutral form brings OpenAI’s reasoning back, and no one else’s thoughts', () => {
    const item = {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'Gate first.' }],
      encrypted_content: 'gAAAAB',
    }
    expect(converted('acontext', 'responses', ...converted('responses', 'acontext', item))).toEqual([item])
    const thought = {
      role: 'model',
      parts: [{ text: 'Hm', thought: true, thoughtSignature: 'c2ln' }, { text: 'Hi' }],
    }
    expect(converted('acontext', 'responses', ...converted('gemini', 'acontext', thought))).toEqual([
      { type: 'message', role: 'assistant', content: 'Hi' },
    ])
  })
})
