import { describe, expect, it } from 'vitest'
import { countedContent, readMessage } from '../src/index.js'
import { part, refusalOf } from './refusal_of.js'
import { converted } from './stored_run.js'

const partsOf = (content: unknown, role = 'user') => readMessage('anthropic', { role, content }).parts

describe('an Anthropic message', () => {
  it.each([
    ['user', 'user', null],
    ['assistant', 'assistant', null],
    ['system', 'user', 'system'],
  ])('of the role %s is stored as %s', (role, stored, provider_role) => {
    const read = readMessage('anthropic', { role, content: 'Hi' })
    expect(read).toEqual({ role: stored, provider_role, name: null, parts: [part('text', 'Hi', null)] })
  })

  it.each([
    [{ type: 'adaptive' }, '{"type":"adaptive"}'],
    ['{"a": 1}', '{"a": 1}'],
    ['{"a": ', '{"a": '],
    ['', '{}'],
    [null, '{}'],
  ])('has a call with the input %j', (input, text) => {
    const [call] = partsOf([{ type: 'tool_use', id: 't', name: 'f', input }], 'assistant')
    expect(call?.meta).toMatchObject({ id: 't', arguments: text })
  })

  it('may only configure what follows, which is no turn in other formats', () => {
    const blob = { role: 'system', output_config: { effort: 'low' } }
    expect(readMessage('anthropic', blob)).toMatchObject({
      role: 'user',
      parts: [{ type: 'data', meta: { data_type: 'output_config', effort: 'low' } }],
    })
    for (const format of ['openai', 'gemini', 'responses'] as const)
      expect(converted('anthropic', format, blob)).toEqual([])
  })

  it('is a response as the SDK returns it', () => {
    const response = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude',
      content: [{ type: 'text', text: 'Hi', citations: null }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    expect(readMessage('anthropic', response).parts).toEqual([part('text', 'Hi', null)])
  })

  it('has a part for each image, wherever its bytes are', () => {
    expect(
      partsOf([
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
        { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
        { type: 'image', source: { type: 'file', file_id: 'file_1' } },
        { type: 'image', source: { type: 'hologram', cube: 1 } },
      ]),
    ).toEqual([
      part('image', null, { type: 'base64', media_type: 'image/png', data: 'aGk=' }),
      part('image', null, { type: 'url', url: 'https://example.com/a.png' }),
      part('image', null, { type: 'file', file_id: 'file_1' }),
      part('data', null, { data_type: 'image', source: { type: 'hologram', cube: 1 } }),
    ])
  })

  it('has a file for each document, and the images of one that is made of blocks', () => {
    const png = { type: 'base64', media_type: 'image/png', data: 'aGk=' }
    expect(
      partsOf([
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
          title: 'A',
        },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' } },
        { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' }, title: null },
        { type: 'document', source: { type: 'file', file_id: 'file_1' } },
        {
          type: 'document',
          source: {
            type: 'content',
            content: [
              { type: 'text', text: 'Hi' },
              { type: 'image', source: png },
            ],
          },
        },
      ]),
    ).toEqual([
      part('file', null, { type: 'base64', media_type: 'application/pdf', data: 'aGk=' }, 'A'),
      part('file', null, { type: 'text', media_type: 'text/plain', data: 'Hi' }),
      part('file', null, { type: 'url', media_type: 'application/pdf', url: 'https://example.com/a.pdf' }),
      part('file', null, { type: 'file', file_id: 'file_1' }),
      part('file', null, { type: 'text', media_type: 'text/plain', data: 'Hi' }),
      part('image', null, png),
    ])
  })

  it('makes calls, whatever their input is', () => {
    expect(
      partsOf(
        [
          { type: 'tool_use', id: 'toolu_1', name: 'search', input: { q: 1 } },
          { type: 'tool_use', id: 'toolu_2', name: 'search', input: [1] },
          { type: 'tool_use', id: 'toolu_3', name: 'search', input: { unparsed_arguments: '{"q":' } },
        ],
        'assistant',
      ),
    ).toEqual([
      part('tool-call', null, { id: 'toolu_1', name: 'search', arguments: '{"q":1}', type: 'tool_use' }),
      part('tool-call', null, { id: 'toolu_2', name: 'search', arguments: '[1]', type: 'tool_use' }),
      part('tool-call', null, { id: 'toolu_3', name: 'search', arguments: '{"q":', type: 'tool_use' }),
    ])
  })

  it('has results, and after each what in it is not text', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'aGk=' }
    const parts = partsOf([
      { type: 'tool_result', tool_use_id: 'toolu_1' },
      { type: 'tool_result', tool_use_id: 'toolu_2', content: 'no', is_error: true },
      {
        type: 'tool_result',
        tool_use_id: 'toolu_3',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', source },
          { type: 'search_result', title: 'T', source: 'S', content: [{ type: 'text', text: 'b' }] },
        ],
      },
    ])
    expect(parts).toEqual([
      part('tool-result', '', { tool_call_id: 'toolu_1' }),
      part('tool-result', 'no', { tool_call_id: 'toolu_2', is_error: true }),
      part('tool-result', 'a\nb', { tool_call_id: 'toolu_3' }),
      part('image', null, { ...source, tool_call_id: 'toolu_3' }),
    ])
    expect(countedContent('anthropic', { parts }).text).toBe('\nno\na\nb')
  })

  it('thinks, openly or not', () => {
    expect(
      partsOf(
        [
          { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
          { type: 'redacted_thinking', data: 'eHl6' },
        ],
        'assistant',
      ),
    ).toEqual([
      part('thinking', 'Hm', { signature: 'c2ln' }),
      part('redacted_thinking', null, { data: 'eHl6' }),
    ])
  })

  it('keeps cache marks, and blocks that have no neutral form', () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' }
    expect(
      partsOf([
        { type: 'text', text: 'Hi', cache_control },
        { type: 'text', text: 'Hi', cache_control: null },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      ]),
    ).toEqual([
      part('text', 'Hi', { cache_control }),
      part('text', 'Hi', null),
      part('data', null, { data_type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }),
      part('data', null, { data_type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }),
    ])
  })
})

describe('what is no Anthropic message', () => {
  const block = (fields: object) => ({ role: 'user', content: [{ type: 'text', text: 'Hi' }, fields] })

  it.each<[string, unknown, string]>([
    ['no role', { content: 'Hi' }, '/role is required and must be one of user, assistant, system'],
    [
      'a role of another provider',
      { role: 'tool', content: 'Hi' },
      '/role must be one of user, assistant, system',
    ],
    [
      'no content',
      { role: 'user' },
      '/content is required and must be a string or an array of content blocks',
    ],
    [
      'null content',
      { role: 'user', content: null },
      '/content must be a string or an array of content blocks',
    ],
    ['a block without type', block({}), '/content/1/type is required and must be a string'],
    [
      'a text block without text',
      block({ type: 'text' }),
      '/content/1/text is required and must be a string',
    ],
    [
      'an image without source',
      block({ type: 'image' }),
      '/content/1/source is required and must be an object',
    ],
    [
      'a source without bytes',
      block({ type: 'image', source: { type: 'base64', media_type: 'image/png' } }),
      '/content/1/source/data is required and must be a string',
    ],
    [
      'a call without id',
      block({ type: 'tool_use', name: 'f', input: {} }),
      '/content/1/id is required and must be a string',
    ],
    [
      'a call without name',
      block({ type: 'tool_use', id: '1', input: {} }),
      '/content/1/name is required and must be a string',
    ],
    ['a call without input', block({ type: 'tool_use', id: '1', name: 'f' }), '/content/1/input is required'],
    [
      'a result without call',
      block({ type: 'tool_result', content: 'x' }),
      '/content/1/tool_use_id is required and must be a string',
    ],
    [
      'a result with a number',
      block({ type: 'tool_result', tool_use_id: '1', content: 5 }),
      '/content/1/content must be a string or an array of content blocks',
    ],
    [
      'a bad block in a result',
      block({ type: 'tool_result', tool_use_id: '1', content: [{ type: 'text' }] }),
      '/content/1/content/0/text is required and must be a string',
    ],
    [
      'thinking without thought',
      block({ type: 'thinking' }),
      '/content/1/thinking is required and must be a string',
    ],
  ])('%s', (_, blob, refusal) => {
    expect(refusalOf('anthropic', blob)).toBe(refusal)
  })
})
