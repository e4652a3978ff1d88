import { describe, expect, it } from 'vitest'
import { readMessage } from '../src/index.js'
import { part, refusalOf } from './refusal_of.js'
import { derivedId, messageId } from './stored_run.js'

const partsOf = (...parts: object[]) => readMessage('gemini', { role: 'model', parts }).parts

describe('a Gemini message', () => {
  it.each([
    ['user', 'user', null],
    ['model', 'assistant', 'model'],
    ['function', 'user', 'function'],
    ['system', 'user', 'system'],
    [undefined, 'user', null],
  ])('of the role %s is stored as %s', (role, stored, provider_role) => {
    const read = readMessage('gemini', { role, parts: [{ text: 'Hi' }] })
    expect(read).toEqual({ role: stored, provider_role, name: null, parts: [part('text', 'Hi', null)] })
  })

  it('may have no parts, as where the answer was withheld', () => {
    for (const blob of [{}, { role: 'model' }, { role: null, parts: null }])
      expect(readMessage('gemini', blob).parts).toEqual([])
  })

  it('has text, thoughts and their signatures', () => {
    expect(
      partsOf(
        { text: 'Hm', thought: true, thoughtSignature: 'c2ln' },
        { text: 'Hm', thought: true },
        { text: '', thoughtSignature: 'c2ln' },
      ),
    ).toEqual([
      part('thinking', 'Hm', { signature: 'c2ln', type: 'thought' }),
      part('thinking', 'Hm', { type: 'thought' }),
      part('text', '', { thought_signature: 'c2ln' }),
    ])
  })

  it.each([
    ['image/png', 'image', {}],
    ['audio/mpeg', 'audio', { format: 'mp3' }],
    ['video/mp4', 'video', {}],
    ['application/pdf', 'file', {}],
  ])('has bytes of %s as %s, in either spelling', (type, kind, rest) => {
    expect(
      partsOf(
        { inlineData: { mimeType: type, data: 'aGk=', displayName: 'a' } },
        { inline_data: { mime_type: type, data: 'aGk=' } },
        { fileData: { mimeType: type, fileUri: 'gs://b/a' } },
        { file_data: { mime_type: type, file_uri: 'gs://b/a' } },
      ),
    ).toEqual([
      part(kind, null, { media_type: type, data: 'aGk=', ...rest }, 'a'),
      part(kind, null, { media_type: type, data: 'aGk=', ...rest }),
      part(kind, null, { media_type: type, url: 'gs://b/a', ...rest }),
      part(kind, null, { media_type: type, url: 'gs://b/a', ...rest }),
    ])
  })

  it('makes calls, whose ids are derived from its own where Gemini gave none', () => {
    const parts = [
      { functionCall: { name: 'search', args: { q: 1 } }, thoughtSignature: 'c2ln' },
      { function_call: { id: 'fc_1', name: 'search', args: null } },
      { functionCall: { name: 'search' } },
    ]
    expect(readMessage('gemini', { role: 'model', parts }, { id: messageId(3) }).parts).toEqual([
      part('tool-call', null, {
        id: derivedId(3, 0),
        name: 'search',
        arguments: '{"q":1}',
        thought_signature: 'c2ln',
      }),
      part('tool-call', null, { id: 'fc_1', name: 'search', arguments: '{}' }),
      part('tool-call', null, { id: derivedId(3, 1), name: 'search', arguments: '{}' }),
    ])
  })

  it('has results, of the calls in the message before it where they name none', () => {
    const parts = [
      { functionResponse: { name: 'search', response: { output: 'found' } } },
      { functionResponse: { name: 'search', response: { error: 'down' } } },
      { function_response: { id: 'fc_1', name: 'book', response: { seat: 1 } } },
      { functionResponse: { id: 'fc_2', name: 'book' } },
      {
        functionResponse: {
          id: 'fc_3',
          response: {},
          parts: [{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }],
        },
      },
    ]
    const place = { id: messageId(4), parent_id: messageId(3) }
    expect(readMessage('gemini', { role: 'user', parts }, place).parts).toEqual([
      part('tool-result', 'found', { tool_call_id: derivedId(3, 0), name: 'search' }),
      part('tool-result', 'down', { tool_call_id: derivedId(3, 1), name: 'search', is_error: true }),
      part('tool-result', '{"seat":1}', { tool_call_id: 'fc_1', name: 'book' }),
      part('tool-result', '', { tool_call_id: 'fc_2', name: 'book' }),
      part('tool-result', '', { tool_call_id: 'fc_3' }),
      part('image', null, { media_type: 'image/png', data: 'aGk=', tool_call_id: 'fc_3' }),
    ])
  })

  it('keeps what has no neutral form', () => {
    expect(
      partsOf(
        { executableCode: { code: '1+1' } },
        { codeExecutionResult: { outcome: 'OUTCOME_OK' } },
        {},
        { text: null },
      ),
    ).toEqual([
      part('data', null, { data_type: 'executable_code', executableCode: { code: '1+1' } }),
      part('data', null, {
        data_type: 'code_execution_result',
        codeExecutionResult: { outcome: 'OUTCOME_OK' },
      }),
      part('data', null, { data_type: 'part' }),
      part('data', null, { data_type: 'part', text: null }),
    ])
  })
})

describe('what is no Gemini message', () => {
  const parts = (...items: unknown[]) => ({ role: 'user', parts: items })

  it.each<[string, unknown, string]>([
    ['null', null, ' must be an object'],
    [
      'a role of another provider',
      { role: 'assistant', parts: [] },
      '/role must be one of user, model, function, tool, system',
    ],
    ['what another format says', { type: 'message' }, '/parts is required and must be an array'],
    ['content in place of parts', { role: 'user', content: 'Hi' }, '/parts is required and must be an array'],
    ['parts that are no array', { role: 'user', parts: {} }, '/parts must be an array'],
    ['a string as part', parts('Hi'), '/parts/0 must be an object'],
    ['text that is none', parts({}, { text: 5 }), '/parts/1/text must be a string'],
    [
      'bytes that are no text',
      parts({ inline_data: { data: 5 } }),
      '/parts/0/inline_data/data must be a string',
    ],
    ['a call that is no object', parts({ functionCall: 'f' }), '/parts/0/functionCall must be an object'],
    [
      'arguments that are no object',
      parts({ functionCall: { name: 'f', args: '{}' } }),
      '/parts/0/functionCall/args must be an object',
    ],
    [
      'a response that is no object',
      parts({ functionResponse: { name: 'f', response: 'x' } }),
      '/parts/0/functionResponse/response must be an object',
    ],
  ])('%s', (_, blob, refusal) => {
    expect(refusalOf('gemini', blob)).toBe(refusal)
  })
})
