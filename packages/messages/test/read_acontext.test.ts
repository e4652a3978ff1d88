import { describe, expect, it } from 'vitest'
import { readMessage } from '../src/index.js'
import { part, refusalOf } from './refusal_of.js'

const read = (...parts: object[]) => readMessage('acontext', { role: 'user', parts }).parts

describe('a message in the neutral form', () => {
  it.each<[string, object, object]>([
    ['text', { type: 'text', text: 'Hi' }, part('text', 'Hi', null)],
    [
      'text with nulls, as the client writes it',
      { type: 'text', text: 'Hi', meta: null, file_field: null },
      part('text', 'Hi', null),
    ],
    [
      'image',
      { type: 'image', meta: { url: 'https://example.com/a.png' } },
      part('image', null, { url: 'https://example.com/a.png' }),
    ],
    [
      'audio',
      { type: 'audio', meta: { data: 'aGk=', format: 'wav' } },
      part('audio', null, { data: 'aGk=', format: 'wav' }),
    ],
    [
      'video',
      { type: 'video', meta: { url: 'gs://b/a.mp4', fps: 5 } },
      part('video', null, { url: 'gs://b/a.mp4', fps: 5 }),
    ],
    [
      'file',
      { type: 'file', filename: 'a.pdf', meta: { file_id: 'file-1' } },
      part('file', null, { file_id: 'file-1' }, 'a.pdf'),
    ],
    [
      'tool-call',
      { type: 'tool-call', meta: { id: '1', name: 'f', arguments: '{}' } },
      part('tool-call', null, { id: '1', name: 'f', arguments: '{}' }),
    ],
    [
      'tool-result',
      { type: 'tool-result', meta: { tool_call_id: '1' } },
      part('tool-result', '', { tool_call_id: '1' }),
    ],
    ['data', { type: 'data', meta: { data_type: 'x', y: 1 } }, part('data', null, { data_type: 'x', y: 1 })],
    ['thinking', { type: 'thinking', text: 'Hm', meta: { signature: null } }, part('thinking', 'Hm', {})],
    [
      'redacted_thinking',
      { type: 'redacted_thinking', meta: { data: 'x' } },
      part('redacted_thinking', null, { data: 'x' }),
    ],
    ["another server's asset", { type: 'image', asset: { s3_key: 'k' } }, part('image', null, {})],
  ])('has parts: %s', (_, given, expected) => {
    expect(read(given)).toEqual([expected])
  })

  it('may be a system message by its meta', () => {
    const meta = { provider_role: 'system', name: 'Ada', other: 1 }
    const read = readMessage('acontext', { role: 'user', parts: [], meta })
    expect(read).toEqual({ role: 'user', provider_role: 'system', name: 'Ada', parts: [] })
  })
})

describe('what is no message in the neutral form', () => {
  const one = (item: unknown) => ({ role: 'user', parts: [item] })

  it.each<[string, unknown, string]>([
    ['no role', { parts: [] }, '/role is required and must be one of user, assistant'],
    ["a provider's role", { role: 'system', parts: [] }, '/role must be one of user, assistant'],
    ['no parts', { role: 'user', content: 'Hi' }, '/parts is required and must be an array'],
    ['a string as part', one('Hi'), '/parts/0 must be an object'],
    [
      'an unknown type',
      one({ type: 'tool_call' }),
      '/parts/0/type must be one of text, image, audio, video, file, tool-call, tool-result, data, thinking, redacted_thinking',
    ],
    ['text without text', one({ type: 'text' }), '/parts/0/text is required and must be a string'],
    [
      'an image from nowhere',
      one({ type: 'image', meta: {} }),
      '/parts/0/meta must have one of data, url, file_id',
    ],
    ['an image without meta', one({ type: 'image' }), '/parts/0/meta is required and must be an object'],
    [
      'a file from nowhere',
      one({ type: 'file', meta: { filename: 'a' } }),
      '/parts/0/meta must have one of data, url, file_id, file_data',
    ],
    [
      'a call without arguments',
      one({ type: 'tool-call', meta: { id: '1', name: 'f' } }),
      '/parts/0/meta/arguments is required and must be a string',
    ],
    [
      'a result of no call',
      one({ type: 'tool-result', text: 'x', meta: {} }),
      '/parts/0/meta/tool_call_id is required and must be a string',
    ],
    [
      'data of no type',
      one({ type: 'data', meta: {} }),
      '/parts/0/meta/data_type is required and must be a string',
    ],
    ['a URL that is no text', one({ type: 'image', meta: { url: 5 } }), '/parts/0/meta/url must be a string'],
    [
      'an error that is no boolean',
      one({ type: 'tool-result', meta: { tool_call_id: '1', is_error: 'no' } }),
      '/parts/0/meta/is_error must be true or false',
    ],
    [
      'an unknown cache mark',
      one({ type: 'text', text: 'x', meta: { cache_control: { type: 'eternal' } } }),
      '/parts/0/meta/cache_control/type must be ephemeral',
    ],
  ])('%s', (_, blob, refusal) => {
    expect(refusalOf('acontext', blob)).toBe(refusal)
  })
})
