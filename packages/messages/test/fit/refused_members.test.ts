import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

// biome-ignore lint/suspicious/noExplicitAny: it looks into messages of every format
type Item = any

function sent(from: MessageFormat, to: MessageFormat, blobs: readonly object[]) {
  const list = new FitToSend(to)
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  const { items, omitted } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as Item), omitted }
}

const asked = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const called = (more = {}) => ({ functionCall: { name: 'look', args: {}, ...more } })
const answered = (output: string, more = {}) => ({
  functionResponse: { name: 'look', response: { output }, ...more },
})
const said = (text: string) => ({ type: 'output_text', text, annotations: [] })
const user = { role: 'user', content: 'x' }

const CONVERSATIONS: Record<string, [MessageFormat, object[]]> = {
  'a status of a message that has no id': [
    'responses',
    [
      { ...user, status: 'completed' },
      { type: 'message', role: 'assistant', status: 'completed', content: [said('y')] },
      { type: 'message', role: 'assistant', status: 'completed', content: 'z' },
    ],
  ],
  'a screenshot without an address, as an SDK dumps it': [
    'responses',
    [
      user,
      {
        type: 'computer_call',
        id: 'cu_1',
        call_id: 'a',
        action: { type: 'wait' },
        pending_safety_checks: [],
      },
      {
        type: 'computer_call_output',
        call_id: 'a',
        output: { type: 'computer_screenshot', file_id: 'file-1', image_url: null },
      },
    ],
  ],
  'an approval and the call that it allowed': [
    'responses',
    [
      user,
      { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f', arguments: '{}', server_label: 's' },
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true, reason: null },
      {
        type: 'mcp_call',
        id: 'mcp_1',
        approval_request_id: 'mcpr_1',
        name: 'f',
        server_label: 's',
        arguments: '{}',
        output: '1',
        error: null,
      },
    ],
  ],
  'calls with ids and responses without': [
    'gemini',
    [
      asked({ text: 'x' }),
      model(called({ id: '1' }), called({ id: '2' })),
      asked(answered('a'), answered('b')),
    ],
  ],
  'a response with an id that its call does not have': [
    'gemini',
    [asked({ text: 'x' }), model(called()), asked(answered('a', { id: 'made-up' }))],
  ],
  'members that programs put into messages': [
    'openai',
    [
      { ...user, timestamp: 1, metadata: {}, sent_from: 'ui' },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'y', index: 0, id: 'lc_1', annotations: [] }],
        reasoning_details: [],
        tool_calls: [
          {
            id: 'a',
            type: 'function',
            thoughtSignature: 's',
            function: { name: 'look', arguments: '{}', description: 'd' },
          },
        ],
        response_metadata: {},
      },
      { role: 'tool', tool_call_id: 'a', content: 'done', status: 'success', artifact: { rows: 1 } },
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png', format: 'png' }, alt: 'a' }],
      },
    ],
  ],
  'a film at YouTube': [
    'gemini',
    [asked({ fileData: { fileUri: 'https://www.youtube.com/watch?v=1' } }, { text: 'x' })],
  ],
}

describe.each(MESSAGE_FORMATS)('fit to be sent in %s', (to) => {
  it.each(Object.entries(CONVERSATIONS))('is a conversation with %s', (_, [from, blobs]) => {
    const { items } = sent(from, to, blobs)
    expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
  })
})

describe('a list', () => {
  it('says of a message’s status nothing, unless it is OpenAI’s own', () => {
    const own = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [said('y')] }
    const [, blobs] = CONVERSATIONS['a status of a message that has no id']!
    expect(sent('responses', 'responses', [...blobs, own]).items).toEqual([
      user,
      { type: 'message', role: 'assistant', content: 'y' },
      { type: 'message', role: 'assistant', content: 'z' },
      own,
    ])
  })

  it('keeps what services need that speak OpenAI’s format, and nothing that a program added', () => {
    const [from, blobs] = CONVERSATIONS['members that programs put into messages']!
    expect(sent(from, 'openai', blobs).items.map((item) => Object.keys(item).join())).toEqual([
      'role,content',
      'role,content,tool_calls',
      'role,content,tool_call_id',
      'role,content',
    ])
    const cache_control = { type: 'ephemeral' }
    const fields = { thought_signature: 'R1M=' }
    const kept = [
      { role: 'user', content: [{ type: 'text', text: 'x', cache_control }] },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [
          {
            extra_content: { google: fields },
            id: 'a',
            type: 'function',
            function: { name: 'look', provider_specific_fields: fields, arguments: '{}' },
          },
        ],
      },
      { role: 'tool', cache_control, content: 'done', tool_call_id: 'a' },
      { role: 'assistant', content: 'Answer:', prefix: true },
    ]
    expect(sent('openai', 'openai', kept).items).toEqual(kept)
  })

  it('has in Gemini’s format the ids of responses that the calls have', () => {
    const ids = (name: string) => {
      const { items } = sent(...(['gemini', 'gemini'] as const), CONVERSATIONS[name]![1])
      return items[2].parts.map((part: Item) => part.functionResponse.id)
    }
    expect(ids('calls with ids and responses without')).toEqual(['1', '2'])
    expect(ids('a response with an id that its call does not have')).toEqual([undefined])
  })

  it('names a film that only Gemini can look at, and sends no page of a site as a file', () => {
    const [from, blobs] = CONVERSATIONS['a film at YouTube']!
    for (const to of ['openai', 'anthropic', 'responses'] as const) {
      const { items, omitted } = sent(from, to, blobs)
      expect(JSON.stringify(items)).not.toContain('youtube')
      expect(omitted).toEqual([{ id: messageId(0), reason: 'not_in_format', what: 'video' }])
    }
    expect(sent(from, 'gemini', blobs).items).toEqual(blobs)
  })
})

describe('a `data:` URL with parameters', () => {
  const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
  const url = `data:image/png;charset=utf-8;base64,${PNG}`
  const file_data = 'data:application/pdf;name=a.pdf;base64,JVBERi0='
  const LOGS: Array<[MessageFormat, object]> = [
    [
      'openai',
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url } },
          { type: 'file', file: { file_data, filename: 'a.pdf' } },
        ],
      },
    ],
    [
      'responses',
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: url, detail: 'auto' },
          { type: 'input_file', file_data, filename: 'a.pdf' },
        ],
      },
    ],
  ]

  it.each(LOGS)('has none in any format, whoever stored it in %s', (from, blob) => {
    for (const to of MESSAGE_FORMATS) {
      const text = JSON.stringify(sent(from, to, [blob]).items)
      expect(text, to).toContain(PNG)
      expect(text, to).not.toMatch(/charset|;name=/)
    }
    const inline = {
      annals_blob: 'a'.repeat(64),
      media_type: 'image/png',
      annals_inline: url.slice(0, -PNG.length),
    }
    const stored = JSON.parse(JSON.stringify(blob).replaceAll(JSON.stringify(url), JSON.stringify(inline)))
    expect(JSON.stringify(sent(from, from, [stored]).items)).toContain('data:image/png;base64,')
  })
})

describe('a file whose bytes or address stand beside its type, as LangChain and AI SDK have it', () => {
  const PDF = Buffer.from('%PDF-1.7\n').toString('base64')
  const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
  const blobs = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x' },
        { type: 'file', base64: PDF, mime_type: 'application/pdf' },
        { type: 'file', data: PNG, mediaType: 'image/png' },
        { type: 'image', image: PNG, mediaType: 'image/png' },
        { type: 'image', image: 'https://x.test/a.png' },
      ],
    },
  ]

  it('is a file or a picture in every format', () => {
    for (const to of MESSAGE_FORMATS) {
      const { items, omitted } = sent('openai', to, blobs)
      expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
      expect(omitted).toEqual([])
      const text = JSON.stringify(items)
      expect([text.split(PDF).length, text.split(PNG).length, text.split('https://x.test').length]).toEqual([
        2, 3, 2,
      ])
    }
    expect(sent('openai', 'openai', blobs).items[0].content.map(({ type }: Item) => type)).toEqual([
      'text',
      'file',
      'image_url',
      'image_url',
      'image_url',
    ])
  })

  it('is a link where OpenRouter and Mistral have its address, and as they have it in their own format', () => {
    const url = 'https://x.test/get?id=1'
    const sound = { type: 'input_audio', input_audio: 'UklGRg==' }
    for (const block of [
      { type: 'file', file: { filename: 'a.pdf', file_data: url } },
      { type: 'document_url', document_url: url },
    ]) {
      const given = { role: 'user', content: [{ type: 'text', text: 'x' }, block, sound] }
      expect(sent('openai', 'openai', [given]).items).toEqual([given])
      const [asked] = sent('openai', 'responses', [given]).items
      expect(asked.content.slice(1)).toEqual([{ type: 'input_file', file_url: url }])
      for (const to of ['anthropic', 'gemini', 'responses'] as const) {
        const { items, omitted } = sent('openai', to, [given])
        expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
        if (block.type === 'file') expect(JSON.stringify(items)).toContain(`":"${url}"`)
        expect(omitted.some(({ what }) => what === 'input_audio')).toBe(true)
      }
    }
  })
})
