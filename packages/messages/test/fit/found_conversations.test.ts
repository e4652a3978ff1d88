import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

const user = (...content: unknown[]) => ({
  role: 'user',
  content: content.length === 1 ? content[0] : content,
})
const assistant = (content: unknown, more = {}) => ({ role: 'assistant', content, ...more })
const says = (text: string) => ({ type: 'text', text })
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} })
const thought = { type: 'thinking', thinking: 'Hm', signature: 'c2ln' }
const image = (media_type = 'image/png') => ({
  type: 'image',
  source: { type: 'base64', media_type, data: 'iVBORw0KGgo=' },
})
const marked = (text: string) => ({ ...says(text), cache_control: { type: 'ephemeral' } })
const PNG = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
const call = (name = 'look') => ({ id: 'a', type: 'function', function: { name, arguments: '{}' } })
const model = (...parts: object[]) => ({ role: 'model', parts })
const asked = (...parts: object[]) => ({ role: 'user', parts })
const ASKED = asked({ text: 'x' })
const said = (id: string) => ({
  type: 'message',
  id,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Yes', annotations: [] }],
})
const reasoning = (id: string) => ({ type: 'reasoning', id, summary: [] })
const search = (id: string) => ({
  type: 'web_search_call',
  id,
  status: 'completed',
  action: { type: 'search', query: 'q' },
})
const fn = { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'look', arguments: '{}' }
const output = { type: 'function_call_output', id: 'fco_1', call_id: 'a', output: 'done' }
const google = (kind: 'toolCall' | 'toolResponse') => ({ [kind]: { id: 't', toolType: 'GOOGLE_SEARCH_WEB' } })

/** Conversations as programs store them, each with what some provider refuses. */
const FOUND: Record<string, [MessageFormat, object[]]> = {
  'an answer that ends with white space': ['anthropic', [user('x'), assistant('Answer: ')]],
  'blocks that end with white space': ['anthropic', [user('x'), assistant([thought, says('Answer:\n')])]],
  'another provider’s answer that ends so': ['openai', [user('x'), assistant('Answer:\t')]],
  'pictures in an answer of Anthropic’s': ['anthropic', [user('x'), assistant([image(), says('y')])]],
  'pictures in an answer of Gemini’s': [
    'gemini',
    [ASKED, model({ text: 'a' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } })],
  ],
  'pictures in an answer of OpenAI’s': ['openai', [user('x'), assistant([says('y'), PNG]), user('z')]],
  'pictures in an instruction': ['openai', [{ role: 'system', content: [PNG] }, user('x')]],
  'a picture of a type by another name': ['anthropic', [user(image('image/jpg'), says('x'))]],
  'a picture of a type that Gemini alone takes': [
    'gemini',
    [asked({ inlineData: { mimeType: 'image/heic', data: 'AAAA' } }, { text: 'x' })],
  ],
  'marks within a document': [
    'anthropic',
    [
      user(
        { type: 'document', source: { type: 'content', content: ['1', '2', '3', '4', '5'].map(marked) } },
        says('x'),
      ),
    ],
  ],
  'a result of MCP without text': [
    'anthropic',
    [
      user('x'),
      assistant([
        { type: 'mcp_tool_use', id: 'm', name: 'look', server_name: 's', input: {} },
        { type: 'mcp_tool_result', tool_use_id: 'm', is_error: false, content: [says('')] },
        says('y'),
      ]),
    ],
  ],
  'thoughts between calls, one of them unanswered': [
    'anthropic',
    [
      user('x'),
      assistant([thought, use('a'), thought, use('b')]),
      user([{ type: 'tool_result', tool_use_id: 'b' }, says('go')]),
      assistant([thought]),
    ],
  ],
  'names of speakers and tools': [
    'openai',
    [
      { role: 'user', name: 'Ada <ada@x.test>', content: 'x' },
      { role: 'assistant', name: '', content: null, tool_calls: [call('a.b')] },
      { role: 'tool', tool_call_id: 'a', name: 'a.b', content: 'done' },
    ],
  ],
  'calls that Gemini did not sign': [
    'gemini',
    [
      ASKED,
      model({ text: 'a' }, { functionCall: { name: 'f' } }, { functionCall: { name: 'g', args: null } }),
      asked({ functionResponse: { name: 'g' } }, { functionResponse: { name: 'f', response: null } }),
    ],
  ],
  'a tool of Google’s, cut off': ['gemini', [ASKED, model(google('toolCall')), ASKED]],
  'a tool of Google’s, its call gone': ['gemini', [ASKED, model(google('toolResponse'), { text: 'y' })]],
  'a tool of Google’s': ['gemini', [ASKED, model(google('toolCall'), google('toolResponse'), { text: 'y' })]],
  'a run of OpenAI’s that was stored twice': [
    'responses',
    [0, 1].flatMap(() => [
      { type: 'message', id: 'msg_0', role: 'user', content: [{ type: 'input_text', text: 'x' }] },
      reasoning('rs_1'),
      fn,
      output,
      reasoning('rs_2'),
      search('ws_1'),
      said('msg_1'),
      { type: 'item_reference', id: 'msg_1' },
    ]),
  ],
  'an approval whose request is gone': [
    'responses',
    [
      { role: 'user', content: 'x' },
      { type: 'mcp_approval_response', approval_request_id: 'r', approve: true },
    ],
  ],
  'an approval': [
    'responses',
    [
      { role: 'user', content: 'x' },
      { type: 'mcp_approval_request', id: 'r', name: 'f', arguments: '{}', server_label: 's' },
      { type: 'mcp_approval_response', approval_request_id: 'r', approve: true },
    ],
  ],
}

function sent(from: MessageFormat, to: MessageFormat, blobs: readonly object[]) {
  const list = new FitToSend(to)
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  const { items, omitted } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as { id?: string; type?: string }), omitted }
}

describe.each(MESSAGE_FORMATS)('fit to be sent in %s', (to) => {
  it.each(Object.entries(FOUND))('is a conversation with %s', (_, [from, blobs]) => {
    const { items } = sent(from, to, blobs)
    expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
  })
})

describe('a list', () => {
  it('has each item of OpenAI’s once, and says again what has no need of its id', () => {
    const { items, omitted } = sent(
      'responses',
      'responses',
      FOUND['a run of OpenAI’s that was stored twice']![1],
    )
    expect(items.slice(0, 7)).toEqual(FOUND['a run of OpenAI’s that was stored twice']![1].slice(0, 7))
    expect(items.slice(7).map(({ type, id }) => [type, id])).toEqual([
      ['message', undefined],
      ['function_call', undefined],
      ['function_call_output', undefined],
      ['message', undefined],
    ])
    expect(omitted.map(({ reason }) => reason)).toEqual(Array(5).fill('duplicate_item'))
  })

  it('names the pictures that an answer cannot have', () => {
    for (const [from, blobs] of [
      FOUND['pictures in an answer of Anthropic’s']!,
      FOUND['pictures in an answer of Gemini’s']!,
    ])
      for (const to of ['anthropic', 'openai', 'responses'] as const)
        expect(sent(from, to, blobs).omitted).toMatchObject([{ reason: 'not_in_format', what: 'image' }])
  })
})
