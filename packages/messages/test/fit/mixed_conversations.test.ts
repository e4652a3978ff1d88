import { describe, expect, it } from 'vitest'
import { type FitOptions, FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

type Stored = readonly [MessageFormat, object]

const anthropic = (role: string, ...content: unknown[]): Stored => ['anthropic', { role, content }]
const openai = (role: string, content: unknown, more = {}): Stored => ['openai', { role, content, ...more }]
const item = (type: string, more: object): Stored => ['responses', { type, ...more }]
const says = (text: string) => ({ type: 'text', text })
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} })
const result = (tool_use_id: string, content: unknown = 'done', more = {}) => ({
  type: 'tool_result',
  tool_use_id,
  content,
  ...more,
})
const search = (id: string) => ({
  type: 'server_tool_use',
  id: `srvtoolu_${id}`,
  name: 'web_search',
  input: { query: 'q' },
})
const found = (id: string) => ({ type: 'web_search_tool_result', tool_use_id: `srvtoolu_${id}`, content: [] })
const PICTURE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
const ASKED = anthropic('user', says('x'))

/** A search that the API runs once the tool beside it has answered, which it did. */
const WAITS = [
  ASKED,
  anthropic('assistant', search('a'), use('b')),
  anthropic('user', result('b')),
] as const satisfies Stored[]
/** A turn that the API paused. */
const PAUSED = [
  ASKED,
  anthropic('assistant', says('y'), search('a'), found('a'), search('b'), search('c')),
] as const satisfies Stored[]
const THOUGHT = { type: 'thinking', thinking: 'Hm', signature: 'c2ln' }
/** A thought whose search was never made. */
const THOUGHT_OF: Stored[] = [
  ASKED,
  anthropic('assistant', THOUGHT, search('a')),
  anthropic('user', says('z')),
]
/** Code that waited beside a call of an earlier turn: the API runs it with the next request, or never. */
const WAITED_LONG: Stored[] = [
  ASKED,
  anthropic('assistant', { ...search('a'), name: 'code_execution' }, use('b')),
  anthropic('user', result('b')),
  anthropic('assistant', use('c')),
  anthropic('user', result('c')),
]
const WAITED_FOR_ERROR: Stored[] = [
  ...WAITS.slice(0, 2),
  anthropic('user', result('b', [says('no'), PICTURE], { is_error: true })),
  anthropic('assistant', found('a'), says('y')),
]
const FAILED: Stored[] = [
  ASKED,
  anthropic('assistant', use('a'), use('b')),
  anthropic('user', result('a', [says('no'), PICTURE], { is_error: true }), result('b'), says('z')),
]
const REFUSED: Stored[] = [
  openai('user', 'x'),
  openai('assistant', [says('y'), { type: 'refusal', refusal: 'no' }]),
  openai('user', 'x'),
  openai('assistant', null, { refusal: 'no' }),
]
const CUSTOM: Stored[] = [
  item('custom_tool_call', { call_id: 'a', name: 'code', input: '1' }),
  openai('tool', 'one', { tool_call_id: 'a' }),
  openai('assistant', null, {
    tool_calls: [{ id: 'b', type: 'custom', custom: { name: 'code', input: '2' } }],
  }),
  item('custom_tool_call_output', { call_id: 'b', output: 'two' }),
]
const SHELL: Stored[] = [
  openai('user', 'x'),
  item('shell_call', { id: 'sh_1', call_id: 'a', action: { commands: ['ls'] }, status: 'completed' }),
  openai('tool', 'files', { tool_call_id: 'a' }),
]
const SCREENSHOT: Stored[] = [
  item('computer_call', {
    id: 'cu_1',
    call_id: 'a',
    action: { type: 'screenshot' },
    pending_safety_checks: [],
  }),
  item('computer_call_output', {
    call_id: 'a',
    output: { type: 'computer_screenshot', image_url: 'data:image/png;base64,iVBORw0KGgo=' },
  }),
]

const call = (id: string, text: string) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: text },
})
const UNREADABLE = ['{"a":"\\ud800\\ud83d","b":"\\\\ud800 \\ud83d\\ude00"}', '{"n":[1e400,-2e999,1e-400]}']
const LONE: Stored[] = [
  openai('user', 'x'),
  openai('assistant', null, { tool_calls: UNREADABLE.map((text, nth) => call(`call_${nth}`, text)) }),
]

const CUT_OFF: Stored[] = [
  openai('user', 'x'),
  item('reasoning', { id: 'rs_1', summary: [] }),
  item('web_search_call', { id: 'ws_1', status: 'in_progress' }),
  openai('user', 'y'),
]

const BYTES = 'data:image/png;base64,iVBORw0KGgo='
const PDF = 'data:application/pdf;base64,JVBERi0='
const PLACES = ['/tmp/a.png', 'file:///a.png', 'C:\\a.png', 'sandbox:/mnt/a.png']
const at = (type: string, url: string) => ({ type, source: { type: 'url', url } })
const MISPLACED: Record<string, Stored[]> = {
  anthropic: [
    anthropic('user', says('x'), at('image', BYTES), at('document', PDF)),
    anthropic('user', says('y'), ...PLACES.map((url) => at('image', url)), at('document', 'gs://b/a.pdf')),
  ],
  gemini: [
    ['gemini', { role: 'user', parts: [{ text: 'x' }, { fileData: { fileUri: BYTES } }] }],
    [
      'gemini',
      {
        role: 'user',
        parts: [
          { text: 'y' },
          ...PLACES.map((file_uri) => ({ file_data: { mime_type: 'image/png', file_uri } })),
        ],
      },
    ],
  ],
  responses: [
    item('message', { role: 'user', content: [{ type: 'input_file', file_url: PDF }] }),
    item('message', {
      role: 'user',
      content: [
        { type: 'input_text', text: 'y' },
        ...PLACES.map((file_url) => ({ type: 'input_file', file_url })),
        ...PLACES.map((image_url) => ({ type: 'input_image', image_url })),
      ],
    }),
  ],
}
const STORED_ELSEWHERE: Stored[] = [
  openai('user', [says('x'), { type: 'image_url', image_url: { url: 'gs://b/a.png' } }]),
  item('message', { role: 'user', content: [{ type: 'input_image', image_url: 'gs://b/a.png' }] }),
]
const AS_FILES: Stored[] = [
  openai('user', [says('x'), { type: 'file', file: { file_data: BYTES, filename: 'a.png' } }]),
  item('message', { role: 'user', content: [{ type: 'input_file', file_data: BYTES, filename: 'a.png' }] }),
]
const EMPTY: Stored[] = [
  anthropic(
    'user',
    says('x'),
    { type: 'document', source: { type: 'content', content: [says(' ')] } },
    { type: 'search_result', source: 's', title: 't', content: [] },
  ),
]

const CONVERSATIONS: Record<string, readonly Stored[]> = {
  'a search that waits beside a call': WAITS,
  'a search that waited and was made': [...WAITS, anthropic('assistant', found('a'), says('y'))],
  'a search that waited and was not made': [...WAITS, anthropic('assistant', says('y'))],
  'a search that nobody waits for any more': [...WAITS, anthropic('user', says('z'))],
  'a search that waited beside an error with a picture': WAITED_FOR_ERROR,
  'a thought of a search that was not made': THOUGHT_OF,
  'code that did not run when it was its turn': WAITED_LONG,
  'a paused turn': PAUSED,
  'a paused turn that went on': [...PAUSED, anthropic('assistant', found('b'), found('c'), says('z'))],
  'a paused turn that the user interrupted': [...PAUSED, anthropic('user', says('z'))],
  'an error with a picture': FAILED,
  'a refusal beside a text, and one alone': REFUSED,
  'free calls and their outputs in two formats': CUSTOM,
  'a shell whose output is a function’s': SHELL,
  'a screenshot': SCREENSHOT,
  'a search that OpenAI had begun': CUT_OFF,
  'bytes and places of a machine at the address of Anthropic’s': MISPLACED.anthropic!,
  'such places at that of Gemini’s': MISPLACED.gemini!,
  'such places at that of OpenAI’s': MISPLACED.responses!,
  'a picture in Google’s store': STORED_ELSEWHERE,
  'a picture sent as a file': AS_FILES,
  'a document and a search result of nothing': EMPTY,
  'half a character and numbers beyond any double': LONE,
}

// biome-ignore lint/suspicious/noExplicitAny: it looks into messages of every format
type Item = any

function sent(to: MessageFormat, stored: readonly Stored[], options?: FitOptions) {
  const list = new FitToSend(to, options)
  for (const [i, [format, blob]] of stored.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format, blob: JSON.stringify(blob) })
  const { items, omitted } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as Item), omitted }
}

const blobsOf = (stored: readonly Stored[]) => stored.map(([, blob]) => blob)

describe.each(MESSAGE_FORMATS)('fit to be sent in %s', (to) => {
  it.each(Object.entries(CONVERSATIONS))('is a conversation with %s', (_, stored) => {
    const { items } = sent(to, stored)
    expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
  })
})

describe('a tool that Anthropic runs', () => {
  it('waits for the calls beside it, and goes on with what it found', () => {
    expect(sent('anthropic', WAITS).items).toEqual(blobsOf(WAITS))
    const made = CONVERSATIONS['a search that waited and was made']!
    expect(sent('anthropic', made, { begun_seq: 3, sent_seqs: [3] }).items).toEqual(blobsOf(made))
  })

  it('is left out when it was not made, or somebody spoke', () => {
    for (const name of ['a search that waited and was not made', 'a search that nobody waits for any more']) {
      const { items, omitted } = sent('anthropic', CONVERSATIONS[name]!)
      expect(items[1].content).toEqual([use('b')])
      expect(omitted).toEqual([{ id: messageId(1), reason: 'no_result', call_id: 'srvtoolu_a' }])
    }
    const beside = [...WAITS.slice(0, 2), anthropic('user', result('b'), says('z'))]
    expect(sent('anthropic', beside).items[1].content).toEqual([use('b')])
  })

  it('has nothing but results after it, though one is an error with a picture', () => {
    expect(sent('anthropic', WAITED_FOR_ERROR).items[2].content).toEqual([
      result('b', [says('Error:'), says('no'), PICTURE]),
    ])
  })

  it('is left out with the thought that led to it, and where a later turn waits', () => {
    expect(sent('anthropic', THOUGHT_OF).items).toEqual([ASKED[1], { role: 'user', content: [says('z')] }])
    expect(sent('anthropic', WAITED_LONG).items[1].content).toEqual([use('b')])
  })

  it('goes on in a turn that was paused, as long as that is the last one', () => {
    expect(sent('anthropic', PAUSED).items).toEqual(blobsOf(PAUSED))
    const went_on = CONVERSATIONS['a paused turn that went on']!
    expect(sent('anthropic', went_on, { begun_seq: 2, sent_seqs: [2] }).items).toEqual(blobsOf(went_on))
    const { items } = sent('anthropic', CONVERSATIONS['a paused turn that the user interrupted']!)
    expect(items[1].content).toEqual([says('y'), search('a'), found('a')])
  })
})

describe('a list', () => {
  it('has the picture of an error after the results, because an error has only text', () => {
    expect(sent('anthropic', FAILED).items[2].content).toEqual([
      result('a', [says('no')], { is_error: true }),
      result('b'),
      PICTURE,
      says('z'),
    ])
  })

  it('has a refusal beside a text as a text, and one alone as it was', () => {
    const { items } = sent('openai', REFUSED)
    expect(items[1].content).toEqual([says('y'), says('no')])
    expect(items[3]).toEqual({ role: 'assistant', content: null, refusal: 'no' })
  })

  it('has outputs of the type of their calls, and no call whose output is of another kind', () => {
    expect(sent('responses', CUSTOM).items).toEqual([
      { type: 'custom_tool_call', call_id: 'a', name: 'code', input: '1' },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'one' },
      { type: 'function_call', call_id: 'b', name: 'code', arguments: '{"input":"2"}' },
      { type: 'function_call_output', call_id: 'b', output: 'two' },
    ])
    const { items, omitted } = sent('responses', SHELL)
    expect(items).toEqual([{ type: 'message', role: 'user', content: 'x' }])
    expect(omitted.map(({ reason }) => reason)).toEqual(['no_call', 'no_result'])
  })

  it('has no call that OpenAI had begun when the answer was cut off, and not the thought of it', () => {
    const { items, omitted } = sent('responses', CUT_OFF)
    expect(items.map(({ content }) => content)).toEqual(['x', 'y'])
    expect(omitted).toEqual([
      { id: messageId(2), reason: 'no_result', call_id: 'ws_1' },
      { id: messageId(1), reason: 'reasoning' },
    ])
  })

  it('has bytes as bytes where an address of them was sent, and nothing of the sender’s machine', () => {
    expect(sent('anthropic', MISPLACED.anthropic!).items.map(({ content }) => content)).toEqual([
      [says('x'), PICTURE, { type: 'document', source: expect.objectContaining({ type: 'base64' }) }],
      [says('y')],
    ])
    const bytes = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }
    const parts = sent('gemini', MISPLACED.gemini!).items.map((one) => one.parts)
    expect(parts).toEqual([[{ text: 'x' }, bytes], [{ text: 'y' }]])
    expect(sent('responses', MISPLACED.responses!).items.map(({ content }) => content)).toEqual([
      [{ type: 'input_file', file_data: PDF, filename: 'file.pdf' }],
      [{ type: 'input_text', text: 'y' }],
    ])
    const { omitted } = sent('gemini', MISPLACED.anthropic!)
    expect(omitted).toContainEqual({ id: messageId(1), reason: 'not_in_format', what: 'image' })
  })

  it('has a picture that was sent as a file as a picture', () => {
    const linked = { type: 'image_url', image_url: { url: BYTES } }
    expect(sent('openai', AS_FILES).items.map(({ content }) => content.at(-1))).toEqual([linked, linked])
    const [first, second] = sent('responses', AS_FILES).items.map(({ content }) => content.at(-1))
    expect(first).toEqual({ type: 'input_image', detail: 'auto', image_url: BYTES })
    expect(second).toEqual(first)
  })

  it('has no half of a character, and no number that a reader of JSON refuses', () => {
    const [, { content }] = sent('anthropic', LONE).items
    expect(content[0].input).toEqual({ a: '\uFFFD\uFFFD', b: '\\ud800 😀' })
    expect(content[1].input).toEqual({ n: ['1e400', '-2e999', 0] })
  })

  it('has parallel calls of one answer together, though some of them have no result', () => {
    const parallel = [...LONE, openai('tool', 'one', { tool_call_id: 'call_0' })]
    expect(sent('responses', parallel).items.map(({ type, role }) => role ?? type)).toEqual([
      'user',
      'function_call',
      'function_call',
      'function_call_output',
      'function_call_output',
    ])
  })

  it('has a screenshot beside the output that it belongs to', () => {
    const [, { parts }] = sent('acontext', SCREENSHOT).items
    expect(parts.map(({ type }: Item) => type)).toEqual(['data', 'image'])
  })
})
