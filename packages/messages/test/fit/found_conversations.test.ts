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

const RUN = { type: 'server_tool_use', id: 'srvtoolu_s', name: 'code_execution', input: { code: 'look()' } }
const CODE_DONE = {
  type: 'code_execution_tool_result',
  tool_use_id: 'srvtoolu_s',
  content: { type: 'code_execution_result', stdout: '', stderr: '', return_code: 0, content: [] },
}
/** Code that calls a tool, and the tool's result. */
const CODE = [
  assistant([RUN, { ...use('a'), caller: { type: 'code_execution_20250825', tool_id: 'srvtoolu_s' } }]),
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'done' }] },
]

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
  'a picture as a URL alone, as Mistral and LangChain have it': [
    'openai',
    [user(says('x'), { type: 'image_url', image_url: PNG.image_url.url })],
  ],
  'pictures whose type has capitals': [
    'openai',
    [user(says('x'), { type: 'image_url', image_url: { url: 'data:IMAGE/PNG;base64,iVBORw0KGgo=' } })],
  ],
  'pictures with their bytes in percent signs': [
    'openai',
    [user(says('x'), { type: 'image_url', image_url: { url: 'data:image/png,%89PNG' } })],
  ],
  'a picture of Anthropic’s whose type has capitals': ['anthropic', [user(image('Image/PNG'), says('x'))]],
  'bytes of Gemini’s without a type': [
    'gemini',
    [asked({ inlineData: { data: 'iVBORw0KGgo=' } }, { inlineData: { data: 'AAAA' } }, { text: 'x' })],
  ],
  'a mark that is no object': ['anthropic', [user({ ...says('x'), cache_control: 'ephemeral' }, says('y'))]],
  'actions that were lost': [
    'responses',
    [
      user('x'),
      { type: 'local_shell_call', id: 'lsh_1', call_id: 'a', action: null, status: 'completed' },
      { type: 'local_shell_call_output', id: 'a', output: 'done' },
      { ...search('ws_1'), action: 'search' },
      said('msg_1'),
    ],
  ],
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
  'ids of another service’s items': [
    'responses',
    [
      { type: 'message', id: 'in_1', role: 'user', content: [{ type: 'input_text', text: 'x' }] },
      reasoning('item_1'),
      { ...said('__fake_id__'), content: [{ type: 'output_text', text: 'I look', annotations: [] }] },
      { ...fn, id: '' },
      { ...output, id: 'a' },
      reasoning(`rs_${'a'.repeat(70)}`),
      { ...fn, call_id: 'b', id: `fc_${'a'.repeat(400)}` },
      { ...output, call_id: 'b' },
    ],
  ],
  'texts of the wrong side': [
    'responses',
    [
      { type: 'message', role: 'user', content: [{ type: 'output_text', text: 'x', annotations: [] }] },
      { role: 'system', content: [{ type: 'text', text: 'x' }] },
      { role: 'assistant', content: [{ type: 'input_text', text: 'y' }] },
      {
        ...said('msg_1'),
        content: [
          { type: 'text', text: 'y' },
          { type: 'refusal', refusal: 'No' },
        ],
      },
      { role: 'user', content: [{ type: 'refusal', refusal: 'No' }] },
      fn,
      { ...output, output: [{ type: 'output_text', text: 'z', annotations: [] }] },
    ],
  ],
  'what a parser of answers adds': [
    'responses',
    [
      { role: 'user', content: 'x' },
      {
        ...said('msg_1'),
        parsed: {},
        content: [{ type: 'output_text', text: '{}', annotations: [], parsed: {}, logprobs: null }],
      },
      { ...fn, parsed_arguments: {} },
      output,
      { type: 'shell_call', id: 'sh_1', call_id: 's', action: { commands: ['ls'] }, created_by: 'u' },
      { type: 'shell_call_output', id: 'sho_1', call_id: 's', output: [], created_by: 'u' },
    ],
  ],
  'arguments that are no object': [
    'openai',
    ['{"a":', '[1]', '"x"', '{"a":1} {', '12345678901234567890'].flatMap((text, nth) => [
      { role: 'user', content: 'x' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `a${nth}`, type: '', function: { name: 'look', arguments: text } }],
      },
      { role: 'tool', tool_call_id: `a${nth}`, content: 'done' },
    ]),
  ],
  'reasoning without a summary': [
    'responses',
    [
      { role: 'user', content: 'x' },
      { type: 'reasoning', id: 'rs_1', summary: null, encrypted_content: 'e' },
      { type: 'reasoning', id: 'rs_2', encrypted_content: 'e' },
      fn,
      output,
    ],
  ],
  'a tool’s turn as Google’s examples write it': [
    'gemini',
    [
      ASKED,
      model({ functionCall: { name: 'f', args: {} } }),
      { role: 'tool', parts: [{ functionResponse: { name: 'f', response: {} } }] },
    ],
  ],
  'a tool that returned nothing': [
    'openai',
    [
      user('x'),
      assistant(null, { tool_calls: [call()] }),
      { role: 'tool', tool_call_id: 'a', content: null },
    ],
  ],
  'such arguments as items': [
    'responses',
    [{ role: 'user', content: 'x' }, { ...fn, arguments: '{"a":' }, output],
  ],
  'names and ids that are cut within a character': [
    'openai',
    [
      { role: 'user', name: `${'a'.repeat(63)}😀`, content: 'x' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [...Array(14).keys()].map((nth) => ({
          ...call(),
          id: `${'a'.repeat(20 + nth)}${'😀'.repeat(20)}`,
        })),
      },
    ],
  ],
  'citations of a file': [
    'anthropic',
    [
      user(
        { type: 'document', source: { type: 'file', file_id: 'file_1' }, citations: { enabled: true } },
        says('x'),
      ),
      assistant([
        {
          ...says('y'),
          citations: [
            {
              type: 'page_location',
              cited_text: 'y',
              document_index: 0,
              document_title: null,
              start_page_number: 1,
              end_page_number: 2,
              file_id: null,
            },
          ],
        },
      ]),
    ],
  ],
  'instructions in places where Anthropic takes none': [
    'anthropic',
    [
      { role: 'system', content: 'Be brief.' },
      user('x'),
      {
        role: 'system',
        content: [says('Be kind.'), { type: 'tool_removal', tool: { type: 'tool_reference', name: 'look' } }],
      },
      { role: 'system', content: 'And quick.', output_config: { effort: 'low' } },
      user('x'),
      { role: 'system', content: 'Now be long.', clear_at: 'next_user_message' },
      assistant('y'),
      { role: 'system', content: 'Be brief.' },
      user('x'),
      assistant([use('a')]),
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'done' }] },
    ],
  ],
  'code of Claude’s that calls tools': ['anthropic', [user('x'), ...CODE, assistant([CODE_DONE, says('y')])]],
  'code that waits for its tools': ['anthropic', [user('x'), ...CODE]],
  'code that was cut off': ['anthropic', [user('x'), ...CODE, user('z'), assistant([CODE_DONE, says('y')])]],
  'a run of Claude’s that was stored twice': [
    'anthropic',
    [0, 1].flatMap(() => [user('x'), assistant([says('y'), RUN, CODE_DONE, says('z'), use('a')])]),
  ],
  'a search beside a call': [
    'anthropic',
    [
      user('x'),
      assistant([{ ...RUN, name: 'web_search' }, use('a')]),
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'done' }] },
      assistant([{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_s', content: [] }, says('y')]),
    ],
  ],
  'media without bytes': [
    'gemini',
    [
      asked({ inlineData: { mimeType: 'image/png' } }, { text: 'x' }),
      asked({ file_data: { mime_type: 'image/png' } }),
    ],
  ],
  'a signed text before a call without a signature': [
    'gemini',
    [
      ASKED,
      model(
        { text: 'a', thoughtSignature: 'c2ln' },
        { functionCall: { name: 'f', args: {} } },
        { functionCall: { name: 'g', args: {} }, thoughtSignature: 'c2ln' },
      ),
      asked(
        { functionResponse: { name: 'f', response: {} } },
        { functionResponse: { name: 'g', response: {} } },
      ),
    ],
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

interface Sent {
  id?: string
  type?: string
  role?: string
  content?: unknown
  tool_call_id?: string
  tool_calls?: Array<{ id: string; function: { name: string } }>
}

function sent(from: MessageFormat, to: MessageFormat, blobs: readonly object[]) {
  const list = new FitToSend(to)
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  const { items, omitted } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as Sent), omitted }
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
      ['web_search_call', undefined],
      ['message', undefined],
    ])
    expect(omitted.map(({ reason }) => reason)).toEqual(Array(4).fill('duplicate_item'))
  })

  it('has the instructions that Anthropic takes, and the others as the user’s words', () => {
    const [from, blobs] = FOUND['instructions in places where Anthropic takes none']!
    const { items, omitted } = sent(from, 'anthropic', blobs)
    expect(items.filter(({ role }) => role === 'system')).toEqual([
      { role: 'system', output_config: { effort: 'low' } },
      { role: 'system', content: 'Now be long.', clear_at: 'next_user_message' },
      { role: 'system', content: 'Be kind.' },
    ])
    expect(items.filter(({ role }) => role === 'user')).toHaveLength(8)
    expect(omitted).toContainEqual({ id: messageId(2), reason: 'not_in_format', what: 'tool_removal' })
  })

  it('keeps code that goes on when its tools have answered, and that it called them', () => {
    const whole = FOUND['code of Claude’s that calls tools']![1]
    for (const blobs of [whole, whole.slice(0, 3)])
      expect(sent('anthropic', 'anthropic', blobs).items).toEqual(blobs)
    const cut = sent('anthropic', 'anthropic', FOUND['code that was cut off']![1])
    expect(cut.items[1]).toEqual(assistant([use('a')]))
    expect(cut.omitted.map(({ reason }) => reason)).toEqual(['no_result', 'no_call'])
  })

  it('has a picture of a result in the result', () => {
    const { items } = sent('openai', 'anthropic', [
      user('x'),
      assistant(null, { tool_calls: [call()] }),
      { role: 'tool', tool_call_id: 'a', content: [PNG, says('y')] },
    ])
    expect(items.at(-1)).toMatchObject({ content: [{ content: [{ type: 'text' }, { type: 'image' }] }] })
  })

  it('has a result of a tool that returned nothing, or whose turn has the role of a tool', () => {
    for (const name of ['a tool that returned nothing', 'a tool’s turn as Google’s examples write it']) {
      const list = new FitToSend('anthropic')
      const [format, blobs] = FOUND[name]!
      for (const [i, blob] of blobs.entries())
        list.add({ id: messageId(i), parent_id: null, seq: i + 1, format, blob: JSON.stringify(blob) })
      expect(list.finish().added, name).toEqual([])
    }
  })

  it('says what a spoken reply said, because its sound is soon forgotten', () => {
    const audio = { id: 'audio_1', data: 'AAAA', expires_at: 1, transcript: 'Yes' }
    const { items } = sent('openai', 'openai', [user('x'), assistant(null, { audio })])
    expect(items[1]).toEqual({ role: 'assistant', content: 'Yes' })
  })

  it('takes more calls of one id than a function takes arguments', () => {
    const blob = assistant(null, { tool_calls: Array.from({ length: 130_000 }, () => call('f')) })
    const done = { role: 'tool', tool_call_id: 'a', content: 'done' }
    expect(
      sent('openai', 'openai', [
        user('x'),
        blob,
        assistant(null, { tool_calls: [call('g')] }),
        done,
      ]).items.at(-1),
    ).toMatchObject({ content: 'done' })
  })

  it('gives results to calls of one id in their order, and to the newest one where some were abandoned', () => {
    const calls = (name: string) => assistant(null, { tool_calls: [call(name)] })
    const done = (content: string) => ({ role: 'tool', tool_call_id: 'a', content })
    /** For each call, its name and what came of it. */
    const told = (...blobs: object[]) => {
      const { items } = sent('openai', 'openai', [user('x'), ...blobs])
      return items.flatMap(({ tool_calls = [] }) =>
        tool_calls.map(({ id, function: { name } }) => {
          const result = items.find(({ tool_call_id }) => tool_call_id === id)!
          return `${name} ${result.content === 'No result was recorded.' ? '-' : result.content}`
        }),
      )
    }
    expect(told(calls('f'), calls('g'), done('1'), done('2'))).toEqual(['f 1', 'g 2'])
    expect(told(calls('f'), calls('g'), done('2'))).toEqual(['f -', 'g 2'])
    expect(told(calls('f'), user('y'), calls('g'), done('2'))).toEqual(['f -', 'g 2'])
    expect(told(calls('f'), user('y'), calls('g'), done('2'), done('1'))).toEqual(['f 1', 'g 2'])
    expect(told(calls('f'), done('1'), calls('g'), done('2'), done('3'))).toEqual(['f 1', 'g 3'])
    const both = assistant(null, { tool_calls: [call('f'), call('g')] })
    expect(told(both, done('1'), done('2'))).toEqual(['f 1', 'g 2'])
    expect(told(both, done('1'))).toEqual(['f 1', 'g -'])
    expect(told(calls('e'), both, done('1'), done('2'))).toEqual(['e -', 'f 1', 'g 2'])
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
