import { describe, expect, it } from 'vitest'
import { contextMessage, editBlob } from '../../src/context/index.js'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat, readMessage } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

// biome-ignore lint/suspicious/noExplicitAny: it looks into items of any format
type Item = any

function fitted(from: MessageFormat, to: MessageFormat, blobs: readonly object[]) {
  const list = new FitToSend(to)
  for (const [nth, blob] of blobs.entries())
    list.add({
      id: messageId(nth),
      parent_id: nth === 0 ? null : messageId(nth - 1),
      seq: nth + 1,
      format: from,
      blob: JSON.stringify(blob),
    })
  const { items, omitted } = list.finish()
  const read: Item[] = items.map(({ json }) => JSON.parse(json))
  expect(brokenRules(to, read), `${from} in ${to}`).toEqual([])
  return { items: read, omitted: omitted.map(({ what, reason }) => what ?? reason) }
}

const asked = { role: 'user', content: 'x' }
const call = (id: string, args = '{}') => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: args },
})
const PNG = 'iVBORw0KGgo='

/** A call and its result as blocks, as programs leave them in messages of OpenAI's format. */
const BLOCKS: Array<[string, object, object]> = [
  [
    'Anthropic’s',
    { type: 'tool_use', id: 'a', name: 'look', input: { q: 1 } },
    { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'done' }] },
  ],
  [
    'the Responses API’s',
    { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'look', arguments: '{"q":1}' },
    { type: 'function_call_output', call_id: 'a', output: 'done' },
  ],
  [
    'LangChain’s',
    { type: 'tool_call', id: 'a', name: 'look', args: { q: 1 } },
    { type: 'tool_result', tool_use_id: 'a', content: 'done' },
  ],
  [
    'LangChain’s of a call that it could not read',
    { type: 'invalid_tool_call', id: 'a', name: 'look', args: '{"q":1}', error: 'Unterminated string' },
    { type: 'tool_result', tool_use_id: 'a', content: 'done' },
  ],
  [
    'AI SDK’s',
    { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: { q: 1 } },
    { type: 'tool-result', toolCallId: 'a', toolName: 'look', output: { type: 'text', value: 'done' } },
  ],
]

describe('calls and results in blocks of a message of OpenAI’s format', () => {
  it.each(BLOCKS)('that are %s are calls and results in every format', (_, used, returned) => {
    const said = { type: 'text', text: 'Hm' }
    const blobs = [
      asked,
      { role: 'assistant', content: [said, used] },
      { role: 'user', content: [returned, { type: 'text', text: 'And?' }] },
    ]
    const like = [
      asked,
      { role: 'assistant', content: 'Hm', tool_calls: [call('a', '{"q":1}')] },
      { role: 'tool', tool_call_id: 'a', content: 'done' },
      { role: 'user', content: 'And?' },
    ]
    for (const to of MESSAGE_FORMATS) {
      const { items, omitted } = fitted('openai', to, blobs)
      expect(omitted).toEqual([])
      expect(JSON.stringify(items)).toMatch(/"q\\?":1.*done.*And\?/)
      if (to === 'openai' || to === 'responses') expect(items).toEqual(fitted('openai', to, like).items)
    }
  })

  it.each(BLOCKS)('that are %s are not said twice where `tool_calls` has them, too', (_, used, returned) => {
    const blobs = [
      asked,
      { role: 'assistant', content: [used], tool_calls: [call('a', '{"q":1}')] },
      { role: 'tool', tool_call_id: 'a', content: [returned] },
    ]
    const { items } = fitted('openai', 'openai', blobs)
    expect(items.slice(1)).toEqual([
      { role: 'assistant', content: null, tool_calls: [call('a', '{"q":1}')] },
      { role: 'tool', tool_call_id: 'a', content: 'done' },
    ])
  })

  it.each(BLOCKS)('that are %s are cleared as others are', (_, used, returned) => {
    const blobs = [
      { role: 'assistant', content: [used], tool_calls: [call('b', '{"q":2}')] },
      { role: 'user', content: [returned] },
    ]
    const edited = blobs.map((blob, at) => {
      const stored = { id: String(at), seq: at + 1, tokens: 9, format: 'openai' as const }
      const { results, calls } = contextMessage({ ...stored, blob: JSON.stringify(blob) })
      expect([results.length, calls.length]).toEqual(at === 0 ? [0, 2] : [1, 0])
      const edit = { results: results.map(() => 'gone'), inputs: calls.map(() => true) }
      return readMessage('openai', editBlob('openai', blob, edit)).parts
    })
    expect(edited[0]!.map(({ meta }) => (meta as Item).arguments)).toEqual(['{}', '{}'])
    expect(edited[1]!.map(({ text }) => text)).toEqual(['gone'])
  })

  it('are LangChain’s calls beside the content, in every format and where they are cleared', () => {
    const blob = {
      role: 'assistant',
      content: '',
      tool_calls: [{ type: 'tool_call', id: 'a', name: 'look', args: { q: 1 } }],
    }
    const blobs = [asked, blob, { role: 'tool', tool_call_id: 'a', content: 'done' }]
    for (const to of MESSAGE_FORMATS) {
      const { items, omitted } = fitted('openai', to, blobs)
      expect(omitted).toEqual([])
      expect(JSON.stringify(items)).toMatch(/"q\\?":1.*done/)
    }
    const edited = editBlob('openai', blob, { results: [], inputs: [true] })
    expect(readMessage('openai', edited).parts.at(-1)).toMatchObject({ meta: { id: 'a', arguments: '{}' } })
  })

  it('are those of AI SDK’s message of a tool, in which each result names its call', () => {
    const told = (toolCallId: string, value: string) => ({
      type: 'tool-result',
      toolCallId,
      toolName: 'look',
      output: { type: 'text', value },
    })
    const approval = { type: 'tool-approval-response', approvalId: '1', approved: true }
    const blobs = [
      asked,
      { role: 'assistant', content: [{ ...BLOCKS[4]![1] }, { ...BLOCKS[4]![1], toolCallId: 'b' }] },
      { role: 'tool', content: [approval] },
      { role: 'tool', content: [told('b', 'two'), told('a', 'one')] },
    ]
    for (const to of MESSAGE_FORMATS)
      expect(JSON.stringify(fitted('openai', to, blobs).items)).toMatch(/one.*two/)
    expect(fitted('openai', 'openai', blobs).items.slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'tool', tool_call_id: 'b', content: 'two' },
    ])
    const cleared = editBlob('openai', blobs[3], { results: ['gone', null], inputs: [] })
    expect(readMessage('openai', cleared).parts.map(({ text }) => text)).toEqual(['gone', 'one'])
  })

  it('have their pictures, and say that they are errors', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
    const content = [{ type: 'text', text: 'No such page' }, image]
    const blobs = [
      asked,
      { role: 'assistant', content: [BLOCKS[0]![1]] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', is_error: true, content }] },
    ]
    for (const to of MESSAGE_FORMATS) expect(JSON.stringify(fitted('openai', to, blobs).items)).toContain(PNG)
    expect(fitted('openai', 'openai', blobs).items[2].content).toBe('Error: No such page')
  })
})

describe('the input of a call that is still the text of a stream', () => {
  const list = (input: string) => [asked, { role: 'assistant', content: [{ ...BLOCKS[0]![1], input }] }]
  const sent = (input: string) => fitted('anthropic', 'anthropic', list(input)).items[1].content[0].input

  it('is an object, or that text, which is not encoded again, if it was cut off', () => {
    expect(sent('{"q":1}')).toEqual({ q: 1 })
    expect(sent('{"q":')).toEqual({ unparsed_arguments: '{"q":' })
    expect(sent('')).toEqual({})
  })
})

describe('a picture of a result in the form of another provider, of MCP, LangChain or AI SDK', () => {
  const FORMS = [
    { type: 'image', data: PNG, mimeType: 'image/png' },
    { type: 'media', data: PNG, mediaType: 'image/png' },
    { type: 'image', base64: PNG, mime_type: 'image/png' },
    { type: 'image', image: PNG, mediaType: 'image/png' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
  ]
  const logs = (form: object): Array<[MessageFormat, object[]]> => [
    [
      'openai',
      [
        asked,
        { role: 'assistant', content: null, tool_calls: [call('a')] },
        { role: 'tool', tool_call_id: 'a', content: [form] },
      ],
    ],
    [
      'responses',
      [
        asked,
        { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: [form] },
      ],
    ],
  ]

  it.each(FORMS)('is in the result, and cleared with it: %j', (form) => {
    for (const [from, blobs] of logs(form)) {
      const inside = (to: MessageFormat) => JSON.stringify(fitted(from, to, blobs).items.slice(2))
      expect(inside('anthropic')).toMatch(/"content":\[\{"type":"image"/)
      expect(inside('gemini')).toContain('"parts":[{"inlineData"')
      expect(inside('responses')).toContain('"output":[{"type":"input_image"')
      const stored = { id: 'x', seq: 1, tokens: 9, format: from, blob: JSON.stringify(blobs[2]) }
      const [result] = contextMessage(stored).results
      expect(result).toMatchObject({ attached: { media: 1, characters: 0 } })
      expect(result!.length).toBeGreaterThan(200)
    }
  })
})

describe('what servers of MCP return', () => {
  const resource = { type: 'resource', resource: { uri: 'file:///a', text: 'read', mimeType: 'text/plain' } }
  const link = { type: 'resource_link', uri: 'https://x.test/a', name: 'page' }
  const image = { type: 'image', data: PNG, mimeType: 'image/png' }
  const content = [resource, { type: 'text', text: 'said' }, link, image]
  const LISTS: Record<string, object[]> = {
    openai: [
      asked,
      { role: 'assistant', content: null, tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content },
    ],
    anthropic: [
      asked,
      { role: 'assistant', content: [BLOCKS[0]![1]] },
      // A picture of Anthropic's has a source.
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: content.slice(0, 3) }] },
    ],
    responses: [
      asked,
      { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: content },
    ],
  }

  it.each(Object.keys(LISTS))(
    'is in a result in %s, and none of it where a provider would refuse it',
    (from) => {
      for (const to of MESSAGE_FORMATS) {
        const { items } = fitted(from as MessageFormat, to, LISTS[from]!)
        const result = JSON.stringify(items[2])
        for (const text of ['said', 'read', 'page: https://x.test/a'])
          expect(result, `${from} in ${to}`).toContain(text)
        if (from !== 'anthropic') expect(JSON.stringify(items)).toContain(PNG)
        expect(JSON.stringify(items)).not.toMatch(/"type":"resource/)
      }
    },
  )
})

describe('items that Codex writes into its transcripts', () => {
  const items = (...more: object[]) => fitted('responses', 'responses', [asked, ...more, asked])

  it('are compactions where they were called otherwise before', () => {
    for (const type of ['context_compaction', 'compaction_summary'])
      expect(items({ type, encrypted_content: 'gAAAA' }).items.at(-2)).toEqual({
        type: 'compaction',
        encrypted_content: 'gAAAA',
      })
  })

  it('are left out where OpenAI does not know them', () => {
    const own = [
      { type: 'context_compaction' },
      { type: 'ghost_snapshot', ghost_commit: {} },
      { type: 'other' },
    ]
    for (const item of own) expect(items(item)).toEqual({ items: [asked, asked], omitted: [item.type] })
  })
})
