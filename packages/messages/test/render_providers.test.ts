import { describe, expect, it } from 'vitest'
import { writeJson } from '../src/json/index.js'
import { converted } from './stored_run.js'

const PNG = { media_type: 'image/png', data: 'aGk=' }
const CALLED = { id: 'call_1', type: 'function', function: { name: 'search', arguments: '{"q":"x"}' } }

describe('OpenAI read as Anthropic', () => {
  const anthropic = (...blobs: object[]) => converted('openai', 'anthropic', ...blobs)

  it('has calls with their ids and arguments, and results in the user’s turn', () => {
    expect(
      anthropic(
        { role: 'assistant', content: null, tool_calls: [CALLED] },
        { role: 'tool', tool_call_id: 'call_1', content: 'found' },
      ),
    ).toEqual([
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'search', input: { q: 'x' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'found' }] },
    ])
  })

  it.each(['', 'null', ' '])(
    'has an empty object where a tool without parameters was called with %j',
    (text) => {
      const call = { id: 'call_1', type: 'function', function: { name: 'now', arguments: text } }
      const [message] = anthropic({ role: 'assistant', content: null, tool_calls: [call] })
      expect(message).toMatchObject({ content: [{ type: 'tool_use', id: 'call_1', name: 'now', input: {} }] })
    },
  )

  it.each(['{a:', '[1]', '"x"', '{"unparsed_arguments":"{a:"}'])(
    'has an object for arguments that are none: %s; and they come back as they were',
    (text) => {
      const call = { id: 'call_1', type: 'function', function: { name: 'search', arguments: text } }
      const there = anthropic({ role: 'assistant', content: null, tool_calls: [call] })
      expect(there).toEqual([
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'call_1', name: 'search', input: { unparsed_arguments: text } }],
        },
      ])
      expect(converted('anthropic', 'openai', ...there)).toEqual([
        { role: 'assistant', content: null, tool_calls: [call] },
      ])
    },
  )

  it('has every digit of a number in the arguments', () => {
    const call = { ...CALLED, function: { name: 'search', arguments: '{"id":1234567890123456789}' } }
    const [message] = anthropic({ role: 'assistant', content: null, tool_calls: [call] })
    expect(writeJson(message)).toContain('"input":{"id":1234567890123456789}')
  })

  it('says a system message as the user, word for word', () => {
    for (const role of ['system', 'developer']) {
      expect(anthropic({ role, content: 'Be brief.' })).toEqual([
        { role: 'user', content: [{ type: 'text', text: 'Be brief.' }] },
      ])
    }
  })

  it.each([
    ['empty content', { role: 'user', content: '' }],
    ['blank content', { role: 'user', content: ' \n' }],
    ['no parts', { role: 'user', content: [] }],
    ['what it cannot carry', { role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }],
  ])('stands in for %s', (_, blob) => {
    expect(anthropic(blob)).toEqual([{ role: 'user', content: [{ type: 'text', text: '(no content)' }] }])
  })

  it('has a refusal and the transcript of a spoken reply as text', () => {
    expect(anthropic({ role: 'assistant', content: null, refusal: 'I cannot.' })).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'I cannot.' }] },
    ])
    const audio = { id: 'audio_1', data: 'aGk=', expires_at: 1, transcript: 'Hi there' }
    expect(anthropic({ role: 'assistant', content: null, audio })).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'Hi there' }] },
    ])
  })

  it('has images from data URLs and links, and files by their type', () => {
    const file = (file_data: string, filename: string) => ({ type: 'file', file: { file_data, filename } })
    expect(
      anthropic({
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/jpg;base64,aGk=' } },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'image_url', image_url: { url: 'data:image/svg+xml,%3Csvg/%3E' } },
          file('data:application/pdf;base64,aGk=', 'a.pdf'),
          file('aGk=', 'b.pdf'),
          file('data:text/csv;base64,YSxi', 'c.csv'),
          file('data:application/zip;base64,aGk=', 'd.zip'),
        ],
      }),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'aGk=' } },
          { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
            title: 'a.pdf',
          },
          {
            type: 'document',
            source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
            title: 'b.pdf',
          },
          {
            type: 'document',
            source: { type: 'text', media_type: 'text/plain', data: 'a,b' },
            title: 'c.csv',
          },
        ],
      },
    ])
  })
})

describe('Anthropic read as OpenAI', () => {
  const openai = (...blobs: object[]) => converted('anthropic', 'openai', ...blobs)

  it('is a tool message for each result, ahead of what else the user says, all of one stored message', () => {
    const asked = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
        { type: 'text', text: 'Wait' },
        { type: 'tool_use', id: 'toolu_1', name: 'search', input: { q: 1 } },
        { type: 'tool_use', id: 'toolu_2', name: 'shoot', input: {} },
      ],
    }
    const answered = {
      role: 'user',
      content: [
        { type: 'text', text: 'Here' },
        { type: 'tool_result', tool_use_id: 'toolu_1', content: 'no', is_error: true },
        {
          type: 'tool_result',
          tool_use_id: 'toolu_2',
          content: [{ type: 'image', source: { type: 'base64', ...PNG } }],
        },
      ],
    }
    expect(openai(asked, answered)).toEqual([
      {
        role: 'assistant',
        content: 'Wait',
        tool_calls: [
          { id: 'toolu_1', type: 'function', function: { name: 'search', arguments: '{"q":1}' } },
          { id: 'toolu_2', type: 'function', function: { name: 'shoot', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'Error: no' },
      { role: 'tool', tool_call_id: 'toolu_2', content: '' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Here' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        ],
      },
    ])
  })

  it('keeps call and result together where both are in one message', () => {
    const content = [
      { type: 'text', text: 'First' },
      { type: 'tool_use', id: 'toolu_1', name: 'search', input: {} },
      { type: 'tool_result', tool_use_id: 'toolu_1', content: 'found' },
      { type: 'text', text: 'Then' },
    ]
    expect(openai({ role: 'assistant', content })).toEqual([
      {
        role: 'assistant',
        content: 'First',
        tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'search', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'found' },
      { role: 'assistant', content: 'Then' },
    ])
  })

  it('has system messages, and is empty where there is nothing to say', () => {
    expect(openai({ role: 'system', content: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
    ])
    const redacted = [{ type: 'redacted_thinking', data: 'x' }]
    expect(openai({ role: 'assistant', content: redacted })).toEqual([{ role: 'assistant', content: '' }])
  })
})

describe('read as Gemini', () => {
  it('has the name of the function in the result, from the call', () => {
    const blobs = [
      { role: 'assistant', content: null, tool_calls: [CALLED] },
      { role: 'tool', tool_call_id: 'call_1', content: 'found' },
    ]
    const called = { functionCall: { id: 'call_1', name: 'search', args: { q: 'x' } } }
    const response = { id: 'call_1', name: 'search', response: { output: 'found' } }
    expect(converted('openai', 'gemini', ...blobs)).toEqual([
      { role: 'model', parts: [{ ...called, thoughtSignature: 'skip_thought_signature_validator' }] },
      { role: 'user', parts: [{ functionResponse: response }] },
    ])
  })

  it('has the id of the call for a name where the call is on an earlier page', () => {
    const result = { role: 'tool', tool_call_id: 'call_1', content: 'found' }
    expect(converted('openai', 'gemini', result)).toEqual([
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'call_1', name: 'call_1', response: { output: 'found' } } }],
      },
    ])
  })

  it('has Anthropic’s thinking without its signature, and errors, images and files', () => {
    expect(
      converted(
        'anthropic',
        'gemini',
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm', signature: 'c2ln' }] },
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', ...PNG } },
            { type: 'tool_result', tool_use_id: 't', content: 'down', is_error: true },
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' } },
            { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } },
          ],
        },
      ),
    ).toEqual([
      { role: 'model', parts: [{ text: 'Hm', thought: true }] },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 't', name: 't', response: { error: 'down' } } },
          { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
          { inlineData: { mimeType: 'text/plain', data: 'SGk=' } },
          { fileData: { fileUri: 'https://example.com/a.pdf', mimeType: 'application/pdf' } },
        ],
      },
    ])
  })

  it('stands in for nothing', () => {
    expect(converted('openai', 'gemini', { role: 'assistant', content: null })).toEqual([
      { role: 'model', parts: [{ text: '(no content)' }] },
    ])
  })
})
