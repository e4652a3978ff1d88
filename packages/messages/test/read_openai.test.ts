import { describe, expect, it } from 'vitest'
import { countedContent, readMessage } from '../src/index.js'
import { part, refusalOf } from './refusal_of.js'
import { derivedId, messageId } from './stored_run.js'

const read = (blob: object) => readMessage('openai', blob)
const partsOf = (content: unknown) => read({ role: 'user', content }).parts

describe('an OpenAI message', () => {
  it.each([
    ['user', 'user', null],
    ['system', 'user', 'system'],
    ['developer', 'user', 'developer'],
    ['assistant', 'assistant', null],
  ])('of the role %s is stored as %s', (role, stored, provider_role) => {
    expect(read({ role, content: 'Hi', name: 'Ada' })).toEqual({
      role: stored,
      provider_role,
      name: 'Ada',
      parts: [part('text', 'Hi', null)],
    })
  })

  it('of the role tool is one result', () => {
    expect(read({ role: 'tool', tool_call_id: 'call_1', name: 'search', content: 'found' })).toEqual({
      role: 'user',
      provider_role: 'tool',
      name: null,
      parts: [part('tool-result', 'found', { tool_call_id: 'call_1', name: 'search' })],
    })
    const blocks = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]
    expect(read({ role: 'tool', tool_call_id: 'call_1', content: blocks }).parts).toEqual([
      part('tool-result', 'a\nb', { tool_call_id: 'call_1' }),
    ])
  })

  it('keeps empty content, and has no part for content that is null or missing', () => {
    expect(read({ role: 'assistant', content: '' }).parts).toEqual([part('text', '', null)])
    expect(partsOf([])).toEqual([])
    expect(read({ role: 'assistant', content: null }).parts).toEqual([])
    expect(read({ role: 'assistant' }).parts).toEqual([])
  })

  it('has a part for each content part', () => {
    expect(
      partsOf([
        { type: 'text', text: 'Look' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        { type: 'image_url', image_url: 'https://example.com/b.png' },
        { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
        { type: 'file', file: { file_id: 'file-1' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,aGk=', filename: 'a.pdf' } },
        { type: 'novel', pages: 3 },
      ]),
    ).toEqual([
      part('text', 'Look', null),
      part('image', null, { url: 'https://example.com/a.png', detail: 'low' }),
      part('image', null, { media_type: 'image/png', data: 'aGk=' }),
      part('image', null, { url: 'https://example.com/b.png' }),
      part('audio', null, { data: 'aGk=', format: 'wav' }),
      part('file', null, { file_id: 'file-1' }),
      part('file', null, { file_data: 'data:application/pdf;base64,aGk=', filename: 'a.pdf' }, 'a.pdf'),
      part('data', null, { data_type: 'novel', pages: 3 }),
    ])
  })

  it('is a reply as the SDK returns it, with its nulls and a refusal', () => {
    const reply = {
      role: 'assistant',
      content: null,
      refusal: 'I cannot.',
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: null,
    }
    expect(read(reply).parts).toEqual([part('text', 'I cannot.', { is_refusal: true })])
    expect(read({ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }).parts).toEqual([
      part('text', 'No.', { is_refusal: true }),
    ])
  })

  it('is a spoken reply, whose transcript is the text of the part', () => {
    const audio = { id: 'audio_1', data: 'aGk=', expires_at: 1, transcript: 'Hi there' }
    expect(read({ role: 'assistant', content: null, audio }).parts).toEqual([
      part('audio', 'Hi there', { id: 'audio_1', data: 'aGk=' }),
    ])
  })

  it('makes calls, of functions and of custom tools', () => {
    const tool_calls = [
      { id: 'call_1', type: 'function', function: { name: 'search', arguments: '{"q": 1}' } },
      { id: 'call_2', type: 'function', function: { name: 'search', arguments: '' } },
      { id: 'call_3', type: 'custom', custom: { name: 'run', input: 'print("hi")' } },
    ]
    const { parts } = read({ role: 'assistant', content: 'Wait', tool_calls })
    expect(parts).toEqual([
      part('text', 'Wait', null),
      part('tool-call', null, { id: 'call_1', name: 'search', arguments: '{"q": 1}', type: 'function' }),
      part('tool-call', null, { id: 'call_2', name: 'search', arguments: '', type: 'function' }),
      part('tool-call', null, {
        id: 'call_3',
        name: 'run',
        arguments: '{"input":"print(\\"hi\\")"}',
        type: 'custom',
      }),
    ])
    expect(countedContent('openai', { parts }).text).toBe(
      'Wait\nsearch\n{"q": 1}\nsearch\n\nrun\n{"input":"print(\\"hi\\")"}',
    )
  })

  it.each([
    [{ name: 'now' }, '{}'],
    [{ name: 'now', arguments: null }, '{}'],
    [{ name: 'now', arguments: '' }, ''],
  ])('may have a call without arguments: %j', (called, text) => {
    const tool_calls = [{ id: 'c', index: 0, type: 'function', function: called }]
    const [call] = readMessage('openai', { role: 'assistant', content: null, tool_calls }).parts
    expect(call?.meta).toMatchObject({ id: 'c', name: 'now', arguments: text })
  })

  it('has an id derived from its own for a call in the old form, and the same id for the answer', () => {
    const function_call = { name: 'search', arguments: '{}' }
    const asked = readMessage('openai', { role: 'assistant', function_call }, { id: messageId(0) })
    const answer = { role: 'function', name: 'search', content: null }
    const answered = readMessage('openai', answer, { id: messageId(1), parent_id: messageId(0) })
    const id = derivedId(0, 0)
    expect(asked.parts).toEqual([
      part('tool-call', null, { id, name: 'search', arguments: '{}', type: 'function' }),
    ])
    expect(answered.parts).toEqual([part('tool-result', '', { tool_call_id: id, name: 'search' })])
    expect(answered.provider_role).toBe('function')
  })
})

describe('what is no OpenAI message', () => {
  const call = (fields: object) => ({ role: 'assistant', tool_calls: [fields] })

  it.each<[string, unknown, string]>([
    ['an array', [], ' must be an object'],
    [
      'no role',
      { content: 'Hi' },
      '/role is required and must be one of system, developer, user, assistant, tool, function',
    ],
    [
      'a role of another provider',
      { role: 'model', content: 'Hi' },
      '/role must be one of system, developer, user, assistant, tool, function',
    ],
    [
      'no content',
      { role: 'user' },
      '/content is required and must be a string or an array of content parts',
    ],
    [
      'null content of a user',
      { role: 'user', content: null },
      '/content must be a string or an array of content parts',
    ],
    [
      'a number as content',
      { role: 'assistant', content: 5 },
      '/content must be a string or an array of content parts',
    ],
    ['a string as content part', { role: 'user', content: ['Hi'] }, '/content/0 must be an object'],
    [
      'a content part without type',
      { role: 'user', content: [{ text: 'Hi' }] },
      '/content/0/type is required and must be a string',
    ],
    [
      'a text part without text',
      { role: 'user', content: [{ type: 'text' }] },
      '/content/0/text is required and must be a string',
    ],
    [
      'an image without URL',
      { role: 'user', content: [{ type: 'image_url', image_url: {} }] },
      '/content/0/image_url/url is required and must be a string',
    ],
    [
      'a call without id',
      call({ type: 'function', function: { name: 'f', arguments: '' } }),
      '/tool_calls/0/id is required and must be a string',
    ],
    [
      'a call without function',
      call({ id: '1', type: 'function' }),
      '/tool_calls/0/function is required and must be an object',
    ],
    [
      'a call without name',
      call({ id: '1', function: { arguments: '' } }),
      '/tool_calls/0/function/name is required and must be a string',
    ],
    [
      'arguments that are no text',
      call({ id: '1', function: { name: 'f', arguments: {} } }),
      '/tool_calls/0/function/arguments must be a string',
    ],
    ['calls that are no array', { role: 'assistant', tool_calls: {} }, '/tool_calls must be an array'],
    [
      'a result without call',
      { role: 'tool', content: 'x' },
      '/tool_call_id is required and must be a string',
    ],
    [
      'a function result without name',
      { role: 'function', content: 'x' },
      '/name is required and must be a string',
    ],
    ['a name that is no text', { role: 'user', content: 'x', name: 5 }, '/name must be a string'],
  ])('%s', (_, blob, refusal) => {
    expect(refusalOf('openai', blob)).toBe(refusal)
  })
})
