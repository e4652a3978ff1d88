import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'
import { REPORTED_ITEMS } from './reported_items.js'

const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown, more = {}) => ({ role: 'assistant', content, ...more })
const says = (text: string) => ({ type: 'text', text })
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} })
const result = (tool_use_id: string, content: unknown = 'done') =>
  user([{ type: 'tool_result', tool_use_id, content }])
const call = (id: string, more = {}) => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: '{}' },
  ...more,
})
const done = (tool_call_id: string) => ({ role: 'tool', tool_call_id, content: 'done' })
const asked = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const JPEG = '/9j/4AAQSkZJRgABAQAAAQ=='
const ICON = 'AAABAAEAEBAAAAEAIABoBAAAFgAAAA=='
const image = (media_type: string, data: string) => ({
  type: 'image',
  source: { type: 'base64', media_type, data },
})
const searched = (id: string, more = {}) => [
  { type: 'server_tool_use', id, name: 'web_search', input: { query: 'q' }, ...more },
  {
    type: 'web_search_tool_result',
    tool_use_id: id,
    content: [{ type: 'web_search_result', url: 'u', title: 't', encrypted_content: 'e', page_age: null }],
    ...more,
  },
  {
    ...says('y'),
    citations: [
      { type: 'web_search_result_location', url: 'u', title: null, encrypted_index: 'i', cited_text: 'c' },
    ],
  },
]
const ran = (id: string) => [
  { type: 'server_tool_use', id, name: 'code_execution', input: {} },
  { type: 'code_execution_tool_result', tool_use_id: id, content: { type: 'code_execution_result' } },
  says('y'),
]
const thought = (more = {}) => ({ type: 'thinking', thinking: 'hm', signature: 'c2ln', ...more })

const DRAWN = {
  images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
}

/** Conversations that people reported a provider to refuse from then on, whatever was asked. */
const REPORTED: Record<string, [MessageFormat, object[]]> = {
  ...REPORTED_ITEMS,
  'a result that was stored before its call': [
    'anthropic',
    [user('x'), result('a'), assistant([use('a')]), assistant('ok')],
  ],
  'results that were stored before their calls': [
    'openai',
    [user('x'), done('b'), done('a'), assistant(null, { tool_calls: [call('a'), call('b')] }), user('y')],
  ],
  'a search of another service in Anthropic’s format': [
    'anthropic',
    [user('x'), assistant(searched('call_1')), user('z')],
  ],
  'a search whose results a gateway found': [
    'anthropic',
    [
      user('x'),
      assistant([
        searched('srvtoolu_1')[0],
        { ...searched('srvtoolu_1')[1], content: [{ type: 'web_search_result', url: 'u', title: 't' }] },
        says('y'),
      ]),
      user('z'),
    ],
  ],
  'code that another service ran in Anthropic’s format': [
    'anthropic',
    [user('x'), assistant([...ran('call-1'), { ...use('a'), caller: { type: 'direct' } }]), result('a')],
  ],
  'nulls of Anthropic’s SDK': ['anthropic', [user('x'), assistant(searched('srvtoolu_1', { caller: null }))]],
  'a picture and a file of nothing': [
    'openai',
    [
      user([
        { type: 'image_url', image_url: { url: '' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: '' } },
        { type: 'text', text: 'x' },
      ]),
    ],
  ],
  'a picture and a document of nothing, also in a result': [
    'anthropic',
    [
      user([
        { type: 'image', source: { type: 'url', url: '' } },
        { type: 'text', text: 'x' },
      ]),
      assistant([use('a')]),
      user([
        {
          type: 'tool_result',
          tool_use_id: 'a',
          content: [
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: '' } },
            { type: 'text', text: 'y' },
          ],
        },
      ]),
    ],
  ],
  'nulls of frameworks in OpenAI’s format': [
    'openai',
    [
      user([
        { type: 'image_url', image_url: { url: 'https://x.test/a.png', detail: null } },
        { type: 'text', text: 'x', annotations: null },
        { type: 'file', file: { file_id: 'file-1', file_data: null, filename: null } },
      ]),
      assistant(null, {
        refusal: null,
        audio: null,
        tool_calls: [call('a', { index: null, extra_content: null })],
      }),
      { ...done('a'), name: null, artifact: null },
    ],
  ],
  'nulls that a model and its tool mean': [
    'openai',
    [
      user('x'),
      assistant(null, { tool_calls: [call('a', { function: { name: 'f', arguments: '{"a":null}' } })] }),
      { ...done('a'), content: '{"a":null}' },
    ],
  ],
  'nulls of Google’s SDK for Python': [
    'gemini',
    [
      asked({ text: 'x', thought: null, inline_data: null, function_call: null }),
      model({
        thought_signature: null,
        text: null,
        function_call: { id: null, name: 'f', args: {}, partial_args: null, will_continue: null },
      }),
    ],
  ],
  'calls as they were streamed': [
    'gemini',
    [
      asked({ text: 'x' }),
      model({
        functionCall: { name: 'f', args: {}, partialArgs: [{ jsonPath: '$.a' }], willContinue: false },
      }),
    ],
  ],
  'what a parser adds to calls': [
    'openai',
    [
      user('x'),
      assistant(null, {
        tool_calls: [call('a', { function: { name: 'f', arguments: '{}', parsed_arguments: {} } })],
      }),
      done('a'),
    ],
  ],
  'a picture of another type than it is called': [
    'anthropic',
    [
      user([image('image/png', JPEG), says('x')]),
      assistant([use('a')]),
      result('a', [image('image/jpeg', PNG)]),
    ],
  ],
  'such a picture in a link': [
    'openai',
    [user([{ type: 'image_url', image_url: { url: `data:image/jpeg;base64,${PNG}` } }])],
  ],
  'an icon by the name of a picture': [
    'anthropic',
    [
      user([image('image/png', ICON), says('x')]),
      assistant([use('a')]),
      result('a', [image('image/png', ICON)]),
    ],
  ],
  'a drawing in SVG': ['anthropic', [user([image('image/svg+xml', 'PHN2Zz48L3N2Zz4='), says('x')])]],
  'such a drawing as items': [
    'responses',
    [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: 'data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=', detail: 'auto' },
          { type: 'input_text', text: 'x' },
        ],
      },
      { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
      {
        type: 'function_call_output',
        call_id: 'a',
        output: [{ type: 'input_image', image_url: 'data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=' }],
      },
    ],
  ],
  'a picture that another model drew': ['openai', [user('draw'), assistant('Here', DRAWN), user('again')]],
  'a picture that Gemini did not sign': [
    'gemini',
    [
      asked({ text: 'x' }),
      model(
        { text: 'hm', thought: true },
        { text: 'Here' },
        { inline_data: { mime_type: 'image/png', data: PNG } },
      ),
    ],
  ],
  'results of MCP servers as they came': [
    'anthropic',
    [
      user('x'),
      assistant([use('a')]),
      result('a', [
        { type: 'resource_link', name: 'A page', uri: 'https://x.test', mimeType: 'text/html' },
        { type: 'resource', resource: { uri: 'file:///a', text: 'said' } },
        { type: 'resource', resource: { uri: 'file:///a.csv', mimeType: 'text/csv', blob: 'YSxi' } },
        { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
      ]),
    ],
  ],
  'a file without a name': [
    'openai',
    [user([{ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } }, says('x')])],
  ],
  'such files as items': [
    'responses',
    [
      {
        role: 'user',
        content: [
          { type: 'input_file', file_data: 'data:text/plain;base64,YQ==' },
          { type: 'input_file', file_data: 'JVBERi0=', filename: '' },
          { type: 'input_file', file_url: 'https://x.test/a.pdf' },
        ],
      },
    ],
  ],
  'a subagent’s turns between calls and results': [
    'anthropic',
    [
      user('x'),
      assistant([use('a'), use('b')]),
      result('a'),
      assistant([use('c')]),
      result('b'),
      result('c'),
      assistant('y'),
    ],
  ],
}

interface Block {
  type?: string
  id?: string
  tool_use_id?: string
  content?: unknown
  citations?: unknown
}

function sent(
  from: MessageFormat,
  to: MessageFormat,
  blobs: readonly object[],
  options: ConstructorParameters<typeof FitToSend>[1] = {},
) {
  const list = new FitToSend(to, options)
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  const { items, omitted, added } = list.finish()
  return {
    items: items.map(({ json }) => JSON.parse(json) as { role?: string; content?: unknown }),
    omitted: omitted.map(({ reason, what }) => (what === undefined ? reason : `${reason} ${what}`)),
    added: added.map(({ reason }) => reason),
  }
}

describe.each(MESSAGE_FORMATS)('fit to be sent in %s', (to) => {
  it.each(Object.entries(REPORTED))('is a conversation with %s', (_, [from, blobs]) => {
    for (const reasoning of ['keep', 'drop'] as const) {
      const { items } = sent(from, to, blobs, { reasoning })
      expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
    }
  })
})

describe('a list', () => {
  it('has a result at its call, though it was stored before, unless somebody spoke since', () => {
    for (const to of MESSAGE_FORMATS) {
      const { omitted, added } = sent(
        'openai',
        to,
        REPORTED['results that were stored before their calls']![1],
      )
      expect([...omitted, ...added], to).toEqual([])
    }
    const late = [done('a'), user('x'), assistant(null, { tool_calls: [call('a')] }), user('y')]
    expect(sent('openai', 'openai', late)).toMatchObject({ omitted: ['no_call'], added: ['no_result'] })
    const twice = [
      user('x'),
      done('a'),
      assistant(null, { tool_calls: [call('a')] }),
      { ...done('a'), content: 'new' },
    ]
    expect(sent('openai', 'openai', twice)).toMatchObject({
      items: [{}, {}, { content: 'new' }],
      omitted: ['duplicate_result'],
    })
  })

  it('stays as it was sent when the call comes after the result', () => {
    const blobs = [user('x'), result('a'), assistant([use('a')]), assistant('ok')]
    const before = sent('anthropic', 'anthropic', blobs.slice(0, 2), { begun_seq: 2 })
    const after = sent('anthropic', 'anthropic', blobs, { begun_seq: 2, sent_seqs: [2] })
    expect(after.items.slice(0, before.items.length)).toEqual(before.items)
    expect(after.items.at(-2)).toEqual(result('a'))
  })

  it('has the calls of Anthropic’s tools under ids that it takes, and no search that it did not make', () => {
    const [from, blobs] = REPORTED['code that another service ran in Anthropic’s format']!
    const [, answer] = sent(from, 'anthropic', blobs).items
    const [code, ran] = answer!.content as Block[]
    expect(code!.id).toMatch(/^srvtoolu_call_1_[a-z0-9]{11}$/)
    expect(ran!.tool_use_id).toBe(code!.id)
    const search = sent(...(['anthropic', 'anthropic'] as const), [user('x'), assistant(searched('call_1'))])
    expect(search.items[1]).toEqual(assistant([says('y')]))
    expect(search.omitted).toEqual(['not_in_format server_tool_use', 'not_in_format web_search_tool_result'])
    const own = assistant(searched('srvtoolu_1'))
    expect(sent('anthropic', 'anthropic', [user('x'), own]).items[1]).toEqual(own)
  })

  it('calls a picture what its bytes are, and names one that the provider does not take', () => {
    const { items } = sent('anthropic', 'anthropic', [user([image('image/png', JPEG), says('x')])])
    expect(items[0]!.content).toEqual([image('image/jpeg', JPEG), says('x')])
    for (const to of ['anthropic', 'responses', 'openai'] as const) {
      const [from, blobs] = REPORTED['an icon by the name of a picture']!
      expect(sent(from, to, blobs).omitted, to).toContain('not_in_format image')
    }
    const blob = { annals_blob: 'a'.repeat(64), media_type: 'image/webp', annals_inline: '' }
    const taken_out = [
      user([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: blob } }]),
    ]
    expect(sent('anthropic', 'anthropic', taken_out).items).toMatchObject([
      { content: [{ source: { media_type: 'image/webp' } }] },
    ])
    const url = {
      annals_blob: 'a'.repeat(64),
      media_type: 'image/webp',
      annals_inline: 'data:image/png;base64,',
    }
    const linked = [user([{ type: 'image_url', image_url: { url } }])]
    expect(JSON.stringify(sent('openai', 'openai', linked).items)).toContain('data:image/webp;base64,')
  })

  it('says what a tool of an MCP server returned, as far as it is text', () => {
    const [from, blobs] = REPORTED['results of MCP servers as they came']!
    const { items, omitted } = sent(from, 'anthropic', blobs)
    expect((items[2]!.content as Block[])[0]!.content).toEqual([says('A page: https://x.test'), says('said')])
    expect(omitted).toEqual(['not_in_format resource', 'not_in_format audio'])
  })

  it('has signatures and encrypted content to the character, in whatever alphabet they were sent', () => {
    for (const [format, blobs] of [
      ['gemini', [asked({ text: 'x' }), model({ text: 'y', thoughtSignature: '-----___vw==' })]],
      [
        'responses',
        [
          { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA-_vw==' },
          { role: 'assistant', content: 'y' },
        ],
      ],
    ] as const)
      expect(sent(format, format, blobs).items).toEqual(blobs)
  })

  it('has thoughts that Anthropic signed, where LiteLLM or OpenRouter keeps them', () => {
    const tool_calls = [call('a')]
    for (const beside of [
      { thinking_blocks: [thought(), { type: 'redacted_thinking', data: 'd' }] },
      {
        reasoning_details: [
          { type: 'reasoning.text', text: 'hm', signature: 'c2ln', format: 'anthropic-claude-v1' },
        ],
      },
    ]) {
      const blobs = [user('x'), assistant('y', { ...beside, tool_calls }), done('a')]
      const { items } = sent('openai', 'anthropic', blobs)
      expect((items[1]!.content as Block[])[0]).toEqual(thought())
      expect(brokenRules('anthropic', items)).toEqual([])
      expect(JSON.stringify(sent('openai', 'anthropic', blobs, { reasoning: 'drop' }).items)).not.toContain(
        'c2ln',
      )
      expect(JSON.stringify(sent('openai', 'openai', blobs, { reasoning: 'drop' }).items)).not.toContain(
        'c2ln',
      )
    }
    const redacted = [{ type: 'reasoning.encrypted', data: 'ZGF0YQ==', format: 'anthropic-claude-v1' }]
    const { items } = sent('openai', 'anthropic', [
      user('x'),
      assistant('y', { reasoning_details: redacted, tool_calls }),
      done('a'),
    ])
    expect((items[1]!.content as Block[])[0]).toEqual({ type: 'redacted_thinking', data: 'ZGF0YQ==' })
    const others = {
      reasoning_details: [
        { type: 'reasoning.text', text: 'hm', signature: 'c2ln', format: 'google-gemini-v1' },
      ],
    }
    expect(
      JSON.stringify(sent('openai', 'anthropic', [user('x'), assistant('y', others)]).items),
    ).not.toContain('c2ln')
  })

  it('has Gemini’s signature of a call, where LiteLLM keeps it', () => {
    for (const one of [
      call('a', { provider_specific_fields: { thought_signature: 'R1M=' } }),
      call('a', {
        function: { ...call('a').function, provider_specific_fields: { thought_signature: 'R1M=' } },
      }),
      call('a__thought__R1M='),
    ]) {
      const { items } = sent('openai', 'gemini', [
        user('x'),
        assistant(null, { tool_calls: [one] }),
        done(one.id),
      ])
      expect(items[1]).toMatchObject({ parts: [{ thoughtSignature: 'R1M=' }] })
    }
    const signed = call(`call_1__thought__${'R1M='.repeat(20)}`)
    const { items } = sent('openai', 'openai', [
      user('x'),
      assistant(null, { tool_calls: [signed] }),
      done(signed.id),
    ])
    const provider_specific_fields = { thought_signature: 'R1M='.repeat(20) }
    expect(items[1]).toMatchObject({ tool_calls: [{ id: 'call_1', provider_specific_fields }] })
    expect(items[2]).toMatchObject({ tool_call_id: 'call_1' })
  })

  it('has Gemini’s signatures where OpenRouter keeps them, under the ids that their calls are sent with', () => {
    const answer = assistant(null, {
      reasoning_details: [
        { type: 'reasoning.text', text: 'hm', format: 'google-gemini-v1' },
        { type: 'reasoning.encrypted', data: 'R1M=', id: 'tool_0_look', format: 'google-gemini-v1' },
      ],
      tool_calls: [call('tool_0_look')],
    })
    const blobs = [user('x'), answer, done('tool_0_look'), user('y'), answer, done('tool_0_look')]
    const { items } = sent('openai', 'gemini', blobs)
    for (const at of [1, 4]) expect(items[at]).toMatchObject({ parts: [{ thoughtSignature: 'R1M=' }] })
    // biome-ignore lint/suspicious/noExplicitAny: it looks into items of OpenAI's format
    for (const { reasoning_details, tool_calls } of sent('openai', 'openai', blobs).items as any[])
      if (tool_calls) expect(reasoning_details[1].id).toBe(tool_calls[0].id)
    expect(sent('openai', 'responses', blobs).omitted).toContain('not_in_format reasoning_content')
  })
})
