import { beforeAll, describe, expect, it } from 'vitest'
import { brokenRules } from '../../packages/messages/test/fit/provider_rules.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

/** What people who run agents report: conversations after which a provider refuses everything, or means something else. */

const FORMATS = ['openai', 'anthropic', 'gemini', 'acontext', 'responses'] as const
type Format = (typeof FORMATS)[number]
// biome-ignore lint/suspicious/noExplicitAny: it looks into messages of every format
type Item = any
interface List {
  items: Item[]
  tokens: number
  omitted: Array<{ reason: string }>
}
type Contexts = Record<Format, List>

interface Fault {
  it: string
  in: Format
  log: object[]
  query?: Record<string, string>
  is: (contexts: Contexts, session: Read) => void | Promise<void>
}
interface Read {
  messages(format: Format): Promise<Item[]>
}

const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

const user = (content: unknown) => ({ role: 'user', content })
const call = (id: string | undefined, name = 'look', text: string | undefined = '{}') => ({
  ...(id !== undefined && { id }),
  type: 'function',
  function: { name, ...(text !== undefined && { arguments: text }) },
})
const calls = (...tool_calls: object[]) => ({ role: 'assistant', content: null, tool_calls })
const result = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content })
const use = (id: string, input: unknown = {}) => ({ type: 'tool_use', id, name: 'look', input })
const used = (id: string, content: unknown, more = {}) => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: id, content, ...more }],
})
const line = (...content: object[]) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content,
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
})
const image = (data = 'iVBORw0KGgo=') => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data },
})
const told = (...parts: object[]) => ({ role: 'user', parts })
const said = (...parts: object[]) => ({ role: 'model', parts })
const bytes = (length: number) => Buffer.alloc(length, 7).toString('base64')
const LONG = 'word '.repeat(400)

const FAULTS: Fault[] = [
  {
    it: 'a call that nobody answered, with others that were',
    in: 'gemini',
    log: [
      told({ text: 'go' }),
      said({ functionCall: { name: 'a', args: {} } }, { functionCall: { name: 'b', args: {} } }),
      told({ functionResponse: { name: 'a', response: { output: '1' } } }),
      told({ text: 'leave it' }),
    ],
    is: ({ openai }) => {
      const results = openai.items.slice(2, 4).map(({ content }) => content)
      expect(results).toEqual(['1', 'No result was recorded.'])
    },
  },
  {
    it: 'parallel calls that are a line each',
    in: 'anthropic',
    log: [
      user('read both'),
      line({ type: 'thinking', thinking: 'two', signature: 'c2ln' }),
      line(use('t1')),
      line(use('t2')),
      used('t1', 'A'),
      used('t2', 'B'),
    ],
    is: ({ openai, anthropic }) => {
      expect(openai.items.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
      expect(anthropic.items).toHaveLength(3)
    },
  },
  {
    it: 'a picture in the first of two results',
    in: 'anthropic',
    log: [user('look'), line(use('t1'), use('t2')), used('t1', [image()]), used('t2', 'two')],
    is: ({ openai }) => {
      const kinds = openai.items.slice(2).map(({ role, content }) => [role, Array.isArray(content)])
      expect(kinds).toEqual([
        ['tool', false],
        ['tool', false],
        ['user', true],
      ])
    },
  },
  {
    it: 'ids with characters that one provider alone takes',
    in: 'responses',
    log: [
      user('hi'),
      { type: 'function_call', call_id: 'call:1|fc.1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call:1|fc.1', output: 'x' },
    ],
    is: ({ anthropic, openai }) => {
      expect(anthropic.items[1].content[0].id).toMatch(/^call_1_fc_1_[a-z0-9]+$/)
      expect(openai.items[1].tool_calls[0].id).toBe('call:1|fc.1')
    },
  },
  {
    it: 'ids that are longer than a provider takes',
    in: 'anthropic',
    log: [user('hi'), line(use(`toolu_${'a'.repeat(90)}`)), used(`toolu_${'a'.repeat(90)}`, 'x')],
    is: ({ openai }) => expect(openai.items[1].tool_calls[0].id.length).toBeLessThanOrEqual(40),
  },
  {
    it: 'ids that are empty',
    in: 'openai',
    log: [user('hi'), calls(call('', 'a'), call('', 'b')), result('', '1'), result('', '2')],
    is: ({ gemini, anthropic }) => {
      const names = gemini.items[2].parts.map((part: Item) => part.functionResponse.name)
      expect(names).toEqual(['a', 'b'])
      expect(anthropic.items[2].content.map(({ content }: Item) => content)).toEqual(['1', '2'])
    },
  },
  {
    it: 'documents, hosted calls and thoughts that are longer than the context may be',
    in: 'anthropic',
    log: Array.from({ length: 12 }, (_, n) => [
      user([{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: LONG } }]),
      line(
        { type: 'server_tool_use', id: `s${n}`, name: 'web_fetch', input: { url: LONG } },
        {
          type: 'web_fetch_tool_result',
          tool_use_id: `s${n}`,
          content: { type: 'web_fetch_tool_result_error', error_code: 'unavailable' },
        },
      ),
    ]).flat(),
    query: { max_tokens: '2000' },
    is: ({ anthropic }) => {
      expect(anthropic.tokens).toBeGreaterThan(400)
      expect(anthropic.tokens).toBeLessThanOrEqual(2_000)
      expect(anthropic.items.length).toBeLessThan(6)
    },
  },
  {
    it: 'results that are only pictures, of which one stays',
    in: 'gemini',
    log: [
      told({ text: 'go' }),
      ...[0, 1, 2].flatMap((n) => [
        said({ functionCall: { id: `c${n}`, name: 'shot', args: {} } }),
        told({
          functionResponse: {
            id: `c${n}`,
            name: 'shot',
            response: {},
            parts: [{ inlineData: { mimeType: 'image/png', data: bytes(300) } }],
          },
        }),
      ]),
    ],
    query: { keep_tool_results: '1' },
    is: (contexts) => {
      for (const format of FORMATS)
        expect(JSON.stringify(contexts[format].items).split(bytes(300)), format).toHaveLength(2)
    },
  },
  {
    it: 'a second result of a call that the model went on after',
    in: 'openai',
    log: [
      user('ask'),
      calls(call('c1', 'ask')),
      result('c1', 'pending'),
      { role: 'assistant', content: 'I asked.' },
      result('c1', 'approved'),
    ],
    is: ({ anthropic }) => expect(anthropic.items[2].content[0].content).toBe('approved'),
  },
  {
    it: 'what the user said while a tool ran',
    in: 'responses',
    log: [
      user('go'),
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
      user('faster'),
      { type: 'function_call_output', call_id: 'c1', output: '1' },
    ],
    is: ({ openai }) =>
      expect(openai.items.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']),
  },
  {
    it: 'more marks of a cache than a request may have',
    in: 'anthropic',
    log: Array.from({ length: 6 }, (_, n) => [
      user('q'),
      line(use(`t${n}`)),
      used(`t${n}`, 'x', { cache_control: { type: 'ephemeral' } }),
    ]).flat(),
    is: ({ anthropic }) => {
      expect(JSON.stringify(anthropic.items).split('cache_control')).toHaveLength(5)
      expect(JSON.stringify(anthropic.items.at(-1))).toContain('cache_control')
    },
  },
  {
    it: 'a call without arguments',
    in: 'openai',
    log: [user('hi'), { ...calls(call('c1', 'now', undefined)), reasoning: null }, result('c1', '12:00')],
    is: ({ anthropic, openai }) => {
      expect(anthropic.items[1].content[0].input).toEqual({})
      expect(openai.items[1].tool_calls[0].function.arguments).toBe('{}')
    },
  },
  {
    it: 'empty arguments, and those that are null',
    in: 'responses',
    log: ['', 'null', ' '].flatMap((text, n) => [
      { type: 'function_call', call_id: `c${n}`, name: 'now', arguments: text },
      { type: 'function_call_output', call_id: `c${n}`, output: '12:00' },
    ]),
    is: ({ gemini, anthropic }) => {
      expect(JSON.stringify(gemini.items)).not.toContain('unparsed')
      expect(JSON.stringify(anthropic.items)).not.toContain('unparsed')
    },
  },
  {
    it: 'a system message that only configures',
    in: 'anthropic',
    log: [{ role: 'system', output_config: { effort: 'high' } }, user('hi')],
    is: ({ openai, anthropic }) => {
      expect(openai.items).toEqual([user('hi')])
      expect(anthropic.items[0]).toEqual({ role: 'system', output_config: { effort: 'high' } })
    },
  },
  {
    it: 'an answer without anything',
    in: 'gemini',
    log: [told({ text: 'hi' }), {}, { role: 'model', parts: null }, { parts: [] }],
    is: (contexts) => {
      for (const format of ['openai', 'anthropic', 'gemini', 'responses'] as const)
        expect(contexts[format].items, format).toHaveLength(1)
    },
  },
  {
    it: 'messages of Conversations with roles that no request has',
    in: 'responses',
    log: ['unknown', 'critic', 'discriminator', 'tool'].map((role) => ({
      type: 'message',
      id: `m_${role}`,
      role,
      status: 'completed',
      content: [{ type: 'text', text: role }],
    })),
    is: async ({ responses, openai }, { messages }) => {
      expect(openai.items.map(({ content }) => content)).toEqual([
        'unknown',
        'critic',
        'discriminator',
        'tool',
      ])
      expect(new Set(responses.items.map(({ role }) => role))).toEqual(new Set(['user']))
      expect((await messages('responses'))[1].role).toBe('critic')
    },
  },
  {
    it: 'items that configure the model of their provider',
    in: 'responses',
    log: [
      user('hi'),
      { type: 'configuration_update', reasoning: { effort: 'high' } },
      { type: 'compaction_trigger' },
    ],
    is: async ({ openai, anthropic }, { messages }) => {
      expect([openai.items.length, anthropic.items.length]).toEqual([1, 1])
      expect(await messages('openai')).toHaveLength(1)
    },
  },
  {
    it: 'a page that a tool of the provider fetched, of more than a body may have',
    in: 'anthropic',
    log: [
      user('fetch'),
      line(
        { type: 'server_tool_use', id: 's1', name: 'web_fetch', input: {} },
        {
          type: 'web_fetch_tool_result',
          tool_use_id: 's1',
          content: {
            type: 'web_fetch_result',
            url: 'https://example.com/a.pdf',
            content: {
              type: 'document',
              source: { type: 'base64', media_type: 'application/pdf', data: bytes(1_200_000) },
            },
          },
        },
      ),
    ],
    is: ({ anthropic }) => {
      expect(anthropic.items[1].content[1].content.content.source.data === bytes(1_200_000)).toBe(true)
      expect(anthropic.tokens).toBeGreaterThan(10_000)
    },
  },
  {
    it: 'a picture that the provider’s interpreter drew, of more than a body may have',
    in: 'responses',
    log: [
      user('plot'),
      {
        type: 'code_interpreter_call',
        id: 'ci_1',
        container_id: 'c',
        code: 'plot()',
        status: 'completed',
        outputs: [{ type: 'image', url: `data:image/png;base64,${bytes(1_200_000)}` }],
      },
    ],
    is: ({ responses }) =>
      expect(responses.items[1].outputs[0].url === `data:image/png;base64,${bytes(1_200_000)}`).toBe(true),
  },
  {
    it: 'a reply with pictures, of more than a body may have',
    in: 'openai',
    log: [
      user('draw'),
      {
        role: 'assistant',
        content: 'here',
        images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${bytes(1_200_000)}` } }],
      },
    ],
    is: ({ gemini }) => expect(gemini.items[1].parts[1].inlineData.data === bytes(1_200_000)).toBe(true),
  },
  {
    it: 'bytes in the URL-safe alphabet',
    in: 'openai',
    log: [user([{ type: 'image_url', image_url: { url: 'data:image/png;base64,-_-_-w' } }])],
    is: async ({ openai, anthropic, gemini, responses }, { messages }) => {
      expect(openai.items[0].content[0].image_url.url).toBe('data:image/png;base64,+/+/+w==')
      expect(anthropic.items[0].content[0].source.data).toBe('+/+/+w==')
      expect(gemini.items[0].parts[0].inlineData.data).toBe('+/+/+w==')
      expect(responses.items[0].content[0].image_url).toBe('data:image/png;base64,+/+/+w==')
      expect((await messages('openai'))[0].content[0].image_url.url).toBe('data:image/png;base64,-_-_-w')
    },
  },
  {
    it: 'a signature of Gemini’s in OpenAI’s format',
    in: 'openai',
    log: [
      user('hi'),
      calls({ ...call('c1'), extra_content: { google: { thought_signature: 'R1NJRw==' } } }, call('c2')),
      result('c1', '1'),
      result('c2', '2'),
    ],
    is: ({ gemini, acontext }) => {
      const signatures = gemini.items[1].parts.map((part: Item) => part.thoughtSignature)
      expect(signatures).toEqual(['R1NJRw==', undefined])
      expect(acontext.items[1].parts[0].meta.thought_signature).toBe('R1NJRw==')
    },
  },
  {
    it: 'a signature of a picture, of a text and of a call',
    in: 'gemini',
    log: [
      told({ text: 'draw' }),
      said(
        { text: 'Here', thoughtSignature: 'VEVYVA==' },
        { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' }, thoughtSignature: 'SU1H' },
        { functionCall: { name: 'f', args: {} }, thoughtSignature: 'Q0FMTA==' },
      ),
    ],
    is: ({ acontext, openai }) => {
      const signatures = acontext.items[1].parts.map(({ meta }: Item) => meta.thought_signature)
      expect(signatures).toEqual(['VEVYVA==', 'SU1H', 'Q0FMTA=='])
      expect(openai.items[1].tool_calls[0].extra_content.google.thought_signature).toBe('Q0FMTA==')
    },
  },
  {
    it: 'names of tools that one provider alone takes',
    in: 'gemini',
    log: [
      told({ text: 'x' }),
      said({ functionCall: { id: 'c1', name: 'server.tool:run', args: {} } }),
      told({ functionResponse: { id: 'c1', name: 'server.tool:run', response: { output: 'x' } } }),
    ],
    is: ({ openai, anthropic, gemini }) => {
      const { name } = openai.items[1].tool_calls[0].function
      expect(name).toMatch(/^server_tool_run_[a-z0-9]{11}$/)
      expect(anthropic.items[1].content[0].name).toBe(name)
      expect(gemini.items[1].parts[0].functionCall.name).toBe('server.tool:run')
    },
  },
  {
    it: 'input that is the text of its object',
    in: 'anthropic',
    log: [user('x'), { role: 'assistant', content: [use('t1', '{"a":[1]}')] }, used('t1', 'y')],
    is: ({ openai, gemini, anthropic }) => {
      expect(openai.items[1].tool_calls[0].function.arguments).toBe('{"a":[1]}')
      expect(gemini.items[1].parts[0].functionCall.args).toEqual({ a: [1] })
      expect(anthropic.items[1].content[0].input).toEqual({ a: [1] })
    },
  },
  {
    it: 'characters that an adapter has escaped',
    in: 'openai',
    log: [
      user('a\ufdd0d800b'),
      calls(call('c1', 'look', '{"path":"\ufdd00"}')),
      result('c1', 'W\ufdd00s\ufdd00'),
      { role: 'assistant', content: 'half \ufdd0\ufdd0' },
    ],
    is: async (contexts, { messages }) => {
      expect(contexts.openai.items[0].content).toBe('a\ufffdb')
      expect(contexts.openai.items[2].content).toBe('W\ufffds\ufffd')
      for (const format of FORMATS)
        expect(JSON.stringify(contexts[format].items), format).not.toMatch(/\ufdd0[0d\ufdd0]/)
      expect(JSON.stringify(await messages('gemini'))).not.toMatch(/\ufdd0[0d]/)
      expect((await messages('openai'))[2].content).toBe('W\ufdd00s\ufdd00')
    },
  },
  {
    it: 'what only answers have, and empty texts, in the format of the session',
    in: 'anthropic',
    log: [
      user('hi'),
      line(
        { type: 'text', text: '', citations: null },
        { type: 'thinking', thinking: 'x', signature: '' },
        use('t1'),
      ),
      used('t1', 'x'),
    ],
    is: async ({ anthropic }, { messages }) => {
      expect(anthropic.items[1]).toEqual({ role: 'assistant', content: [use('t1')] })
      expect((await messages('anthropic'))[1].usage).toBeDefined()
    },
  },
  {
    it: 'that a result is an error',
    in: 'gemini',
    log: [
      told({ text: 'x' }),
      said({ functionCall: { name: 'f', args: {} } }),
      told({ functionResponse: { name: 'f', response: { error: 'no such file' } } }),
    ],
    is: ({ openai, responses, anthropic }) => {
      expect(openai.items[2].content).toBe('Error: no such file')
      expect(responses.items[2]).toMatchObject({ output: 'no such file', status: 'incomplete' })
      expect(anthropic.items[2].content[0].is_error).toBe(true)
    },
  },
]

describe('a context is fit to be sent', () => {
  it.each(FAULTS)('with $it', async ({ in: format, log, query = {}, is }) => {
    const { id } = expectOk<{ id: string }>(await api.createSession({}), 201)
    for (const blob of log) {
      const body = { format, blob }
      expectOk(await api.request('POST', `/api/v1/session/${id}/messages`, { body }), 201)
    }
    const read = async (path: string, more: Record<string, string>) =>
      expectOk<List>(await api.request('GET', `/api/v1/session/${id}/${path}?${new URLSearchParams(more)}`))
    const contexts = {} as Contexts
    for (const to of FORMATS) {
      contexts[to] = await read('context', { format: to, ...query })
      expect(brokenRules(to, contexts[to].items), to).toEqual([])
    }
    const messages = async (to: Format) => (await read('messages', { format: to })).items
    expect(await messages(format)).toHaveLength(log.length)
    await is(contexts, { messages })
  })
})
