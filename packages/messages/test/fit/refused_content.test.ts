import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

const user = (...content: unknown[]) => ({ role: 'user', content })
const assistant = (content: unknown, more = {}) => ({ role: 'assistant', content, ...more })
const says = (text: string) => ({ type: 'text', text })
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} })
const result = (tool_use_id: string, ...content: unknown[]) =>
  user({ type: 'tool_result', tool_use_id, content })
const asked = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const base64 = (text: string) => Buffer.from(text).toString('base64')
const PDF = base64('%PDF-1.7\n')
const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const GIF = 'R0lGODlhAQABAAAAACw='
const HTML = base64('<!DOCTYPE html><html>Sign in</html>')
const WORD = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
const image = (data: string, media_type = 'image/png', more = {}) => ({
  type: 'image',
  source: { type: 'base64', media_type, data, ...more },
})
const document = (media_type: string, data: string, more = {}) => ({
  type: 'document',
  source: { type: 'base64', media_type, data },
  ...more,
})
const linked = (url: string) => ({ type: 'image_url', image_url: { url } })
const file = (filename: string, file_data: string, more = {}) => ({
  type: 'file',
  file: { filename, file_data, ...more },
})
const inline = (mimeType: string, data: string, more = {}) => ({ inlineData: { mimeType, data, ...more } })
const call = (id: string, args = '{}') => ({
  id,
  type: 'function',
  function: { name: 'look', arguments: args },
})
const done = (id: string, content = `done ${id}`) => ({ role: 'tool', tool_call_id: id, content })
const thought = (signature: string) => ({ type: 'thinking', thinking: 'Hm', signature })
const MANY = Array.from({ length: 300 }, (_, nth) => `c${nth}`)
const CODE = `{"code":${' '.repeat(1_100_000)}"x"}`

/** Conversations that a provider refuses for what is in one message, as people reported. */
const REFUSED: Record<string, [MessageFormat, object[]]> = {
  'pictures of types that Gemini does not take': [
    'gemini',
    [
      asked({ text: 'x' }, inline('image/gif', GIF), inline('image/jpg', '/9j/4AAQ'), inline('png', PNG)),
      asked({ fileData: { mimeType: 'image/svg+xml', fileUri: 'https://x.test/a.svg' } }),
    ],
  ],
  'an animation of another provider’s': ['openai', [user(says('x'), linked(`data:image/gif;base64,${GIF}`))]],
  'texts and other files in Gemini’s format': [
    'gemini',
    [
      asked(
        inline('application/json', base64('{"a":1}'), { displayName: 'a.json' }),
        inline('text/x-python', base64('print()')),
        inline(WORD, 'UEsDBA=='),
        inline('application/octet-stream', PDF),
        { file_data: { mime_type: 'application/pdf', file_uri: 'https://x.test/a', display_name: 'a' } },
      ),
    ],
  ],
  'a list as a response of Gemini’s': [
    'gemini',
    [
      asked({ text: 'x' }),
      model({ functionCall: { id: 'a', name: 'f', args: {} } }),
      asked({ functionResponse: { id: 'a', name: 'f', response: ['y', { z: 1 }] } }),
    ],
  ],
  'a film and a link in a response of Gemini’s': [
    'gemini',
    [
      asked({ text: 'x' }),
      model({ functionCall: { id: 'a', name: 'f', args: {} } }),
      asked({
        functionResponse: {
          id: 'a',
          name: 'f',
          response: { output: 'y' },
          parts: [
            { inlineData: { mimeType: 'video/mp4', data: 'AAAA', displayName: 'a.mp4' } },
            { inlineData: { mimeType: 'image/png', data: PNG } },
            { fileData: { mimeType: 'image/png', fileUri: 'https://x.test/a.png' } },
          ],
        },
      }),
    ],
  ],
  'such files in OpenAI’s format': [
    'openai',
    [
      user(
        file('a.csv', `data:text/csv;base64,${base64('a,b')}`),
        file('a.json', `data:application/json;base64,${base64('{"a":1}')}`),
        file('a.docx', `data:${WORD};base64,UEsDBA==`),
        file('a.pdf', `data:application/octet-stream;base64,${PDF}`),
        file('b.pdf', PDF, { file_id: 'file-1' }),
      ),
    ],
  ],
  'such documents in Anthropic’s format': [
    'anthropic',
    [
      user(
        document('text/csv', base64('a,b'), { title: '', context: '' }),
        document('application/json', base64('{"a":1}'), { title: 'a.json' }),
        document(WORD, 'UEsDBA=='),
        document('image/png', PNG, { title: 'a.png' }),
        { type: 'document', source: { type: 'text', media_type: 'text/markdown', data: '# x' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: ' ' } },
      ),
    ],
  ],
  'a page of HTML by the name of a picture or a PDF': [
    'anthropic',
    [
      user(says('x'), image(HTML), document('application/pdf', HTML)),
      assistant([use('a')]),
      result('a', says('y'), image(HTML)),
    ],
  ],
  'what a server or Git has in place of a picture': [
    'anthropic',
    [
      user(
        says('x'),
        image(base64('{"error":"not found"}')),
        image(base64('<Error><Code>AccessDenied</Code></Error>')),
        image(base64('version https://git-lfs.github.com/spec/v1')),
      ),
    ],
  ],
  'drawings and icons in links': [
    'openai',
    [
      user(
        says('x'),
        linked(`data:image/svg+xml;base64,${base64('<svg/>')}`),
        linked('data:image/png;base64,AAABAA=='),
      ),
    ],
  ],
  'such a page in a link': ['openai', [user(says('x'), linked(`data:image/png;base64,${HTML}`))]],
  'bytes with what belongs ahead of them in a link': [
    'anthropic',
    [user(says('x'), image(`data:image/png;base64,${PNG}`), image('iVBORw0K\nGgoAAAAN\r\nSUhEUg=='))],
  ],
  'addresses where bytes belong': [
    'gemini',
    [
      asked(
        { text: 'x' },
        inline('image/png', '/api/file?id=1'),
        inline('image/png', `data:image/png;base64,${PNG}`),
      ),
    ],
  ],
  'an address where Anthropic’s bytes belong': [
    'anthropic',
    [user(says('x'), image('https://x.test/a.png'))],
  ],
  'bytes and paths where an address belongs': [
    'openai',
    [
      user(
        says('x'),
        linked(PNG),
        linked('file:///tmp/a.png'),
        linked('/tmp/a.png'),
        linked('blob:http://x/1'),
      ),
    ],
  ],
  'sounds that OpenAI does not take': [
    'openai',
    [
      user(
        says('x'),
        { type: 'input_audio', input_audio: { data: 'data:audio/wav;base64,AAAA', format: 'x-wav' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'webm' } },
      ),
    ],
  ],
  'files and pictures in two places at once': [
    'responses',
    [
      user(
        { type: 'input_file', file_id: 'file-1', filename: 'a.pdf', mime_type: 'application/pdf' },
        { type: 'input_file', file_url: 'https://x.test/a.pdf', filename: 'a.pdf' },
        { type: 'input_file', file_data: PDF, file_id: 'file-1', filename: 'a.pdf' },
        { type: 'input_image', file_id: 'file-2', image_url: 'https://x.test/a.png', alt: 'a' },
      ),
    ],
  ],
  'blocks of other formats and of streams': [
    'anthropic',
    [
      user({ type: 'input_text', text: 'x' }, linked(`data:image/png;base64,${PNG}`)),
      assistant([
        { type: 'reasoning', reasoning: 'Hm' },
        says('y'),
        { type: 'input_json_delta', index: 1, partial_json: '{' },
        use('a'),
      ]),
      result('a', { type: 'output_text', text: 'z' }, linked('https://x.test/a.png')),
    ],
  ],
  'marks and sources with members of their own': [
    'anthropic',
    [
      user(
        { ...says('x'), cache_control: { type: 'ephemeral', scope: 'global', ttl: '1h' } },
        { ...says('x'), cache_control: { type: 'default' } },
        image(PNG, 'image/png', { path: '/tmp/a.png' }),
      ),
    ],
  ],
  'parts with members of their own': [
    'gemini',
    [
      asked({ text: 'x', id: '1' }),
      model({ functionCall: { id: 'a', name: 'f', args: {}, isClientInitiated: true }, toolName: 'f' }),
      asked({ functionResponse: { id: 'a', name: 'f', response: {}, is_error: false } }),
    ],
  ],
  'thoughts that others signed in Anthropic’s format': [
    'anthropic',
    [
      user(says('x')),
      assistant([thought('gAAAAABo'), says('y')]),
      user(says('x')),
      assistant([thought('0123456789abcdef'.repeat(4)), says('y')]),
      user(says('x')),
      assistant([thought('c2ln'), { type: 'redacted_thinking', data: 'gAAAAABo' }, says('y')]),
      user(says('x')),
      { ...assistant([thought('c2ln'), use('a')]), model: 'kimi-k3' },
      { ...assistant([thought('c2ln'), use('b')]), model: 'moonshot.k2-thinking' },
      assistant([thought('reasoning_content'), use('c')]),
      user(says('x')),
      assistant([{ type: 'thinking', signature: 'c2ln', index: 0 }, says('y')]),
    ],
  ],
  'signatures that are no base64': [
    'gemini',
    [
      asked({ text: 'x' }),
      model({ text: 'Hm', thought: true, thoughtSignature: 'claude#c2ln' }),
      model({ functionCall: { name: 'f', args: {} }, thought_signature: 'a b' }),
    ],
  ],
  'documents of which one is cited': [
    'anthropic',
    [
      user(document('application/pdf', PDF, { citations: { enabled: true } }), says('x')),
      assistant([use('a')]),
      result('a', document('application/pdf', PDF)),
      user(
        { type: 'search_result', source: 's', title: 't', content: [says('a'), says(' ')] },
        {
          type: 'search_result',
          source: 's',
          title: 't',
          content: [says('a')],
          citations: { enabled: true },
        },
      ),
    ],
  ],
  'code that waits beside a call': [
    'anthropic',
    [
      user(says('x')),
      assistant([
        { type: 'server_tool_use', id: 'srvtoolu_s', name: 'code_execution', input: { code: 'search()' } },
        use('a'),
      ]),
      result('a', says('done')),
    ],
  ],
  'an approval that was given twice': [
    'responses',
    [
      { role: 'user', content: 'x' },
      { type: 'mcp_approval_request', id: 'mcpr_1', name: 'f', arguments: '{}', server_label: 's' },
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
    ],
  ],
  'more calls than OpenAI takes': [
    'openai',
    [
      user(says('x')),
      assistant('I look', { tool_calls: MANY.map((id) => call(id)) }),
      ...MANY.map((id) => done(id)),
    ],
  ],
  'arguments and results that are too long': [
    'openai',
    [
      user(says('x')),
      assistant(null, { tool_calls: [call('a', CODE), call('b', `{"code":"${'x'.repeat(1_100_000)}"}`)] }),
      done('a', '😀'.repeat(5_300_000)),
    ],
  ],
}

// biome-ignore lint/suspicious/noExplicitAny: it looks into messages of every format
type Item = any

function sent(from: MessageFormat, to: MessageFormat, blobs: readonly object[]) {
  const list = new FitToSend(to)
  for (const [i, blob] of blobs.entries())
    list.add({ id: messageId(i), parent_id: null, seq: i + 1, format: from, blob: JSON.stringify(blob) })
  const { items, omitted } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as Item), omitted }
}

/** The list of a conversation in the format in which it was written, or in another one. */
function fitted(name: string, to?: MessageFormat) {
  const [from, blobs] = REFUSED[name]!
  return sent(from, to ?? from, blobs)
}

describe.each(MESSAGE_FORMATS)('fit to be sent in %s', (to) => {
  it.each(Object.entries(REFUSED))('is a conversation with %s', (_, [from, blobs]) => {
    const { items } = sent(from, to, blobs)
    expect(brokenRules(to, items), JSON.stringify(items).slice(0, 5_000)).toEqual([])
    const again = sent(to, to, items)
    expect(again.items).toEqual(items)
  })
})

describe('a list', () => {
  it('says what a file of a text says, where the provider takes no such file', () => {
    expect(fitted('such files in OpenAI’s format').items[0].content).toEqual([
      says('a.csv:\na,b'),
      says('a.json:\n{"a":1}'),
      file('a.pdf', `data:application/pdf;base64,${PDF}`),
      file('b.pdf', `data:application/pdf;base64,${PDF}`),
    ])
    const texts = fitted('such documents in Anthropic’s format').items[0].content
    expect(texts.map(({ type, source, title }: Item) => [type, source.data, title])).toEqual([
      ['document', 'a,b', undefined],
      ['document', '{"a":1}', 'a.json'],
      ['image', PNG, undefined],
      ['document', '# x', undefined],
    ])
    const parts = fitted('texts and other files in Gemini’s format').items[0].parts
    expect(parts.map((part: Item) => part.inlineData?.mimeType)).toEqual([
      'text/plain',
      'text/plain',
      'application/pdf',
      undefined,
    ])
  })

  it('names what is left out for what it is', () => {
    const left = (name: string, to?: MessageFormat) =>
      fitted(name, to).omitted.map(({ reason, what }) => `${reason} ${what}`)
    expect(left('a page of HTML by the name of a picture or a PDF')).toEqual([
      'not_in_format image',
      'not_in_format document',
      'not_in_format image',
    ])
    expect(left('what a server or Git has in place of a picture')).toEqual(['not_in_format image'])
    expect(left('an animation of another provider’s', 'gemini')).toEqual(['not_in_format image'])
    expect(left('texts and other files in Gemini’s format')).toEqual(['not_in_format file'])
    expect(left('such files in OpenAI’s format')).toEqual(['not_in_format file'])
    expect(left('sounds that OpenAI does not take')).toEqual(['not_in_format audio'])
    expect(left('blocks of other formats and of streams')).toEqual([
      'not_in_format reasoning',
      'not_in_format input_json_delta',
    ])
  })

  it('has bytes where they belong, in every format', () => {
    const bytes = fitted('bytes with what belongs ahead of them in a link').items[0].content
    expect(bytes.slice(1)).toEqual([image(PNG), image(PNG)])
    expect(fitted('addresses where bytes belong').items[0].parts).toEqual([
      { text: 'x' },
      inline('image/png', PNG),
    ])
    expect(fitted('an address where Anthropic’s bytes belong', 'openai').items[0].content).toEqual([
      says('x'),
      linked('https://x.test/a.png'),
    ])
    expect(fitted('bytes and paths where an address belongs').items[0].content).toEqual([
      says('x'),
      linked(`data:image/png;base64,${PNG}`),
    ])
    const untyped = linked(`data:application/octet-stream;base64,${PNG}`)
    expect(sent('openai', 'openai', [user(says('x'), untyped)]).items).toEqual([
      user(says('x'), linked(`data:image/png;base64,${PNG}`)),
    ])
  })

  it('has more calls than OpenAI takes in several turns, each with its results', () => {
    const { items } = fitted('more calls than OpenAI takes')
    expect(items.flatMap(({ tool_calls }: Item) => tool_calls?.length ?? [])).toEqual([128, 128, 44])
    expect(items[1].content).toBe('I look')
    const answers = items.flatMap(({ tool_call_id, content }: Item) =>
      tool_call_id ? [[tool_call_id, content]] : [],
    )
    expect(answers).toEqual(MANY.map((id) => [id, `done ${id}`]))
  })

  it('has a list that a tool returned within an object for Gemini, and as it is for others', () => {
    const name = 'a list as a response of Gemini’s'
    const [part] = fitted(name).items[2].parts
    expect(part.functionResponse.response).toEqual({ output: ['y', { z: 1 }] })
    expect(fitted(name, 'openai').items[2].content).toBe('["y",{"z":1}]')
  })

  it('has beside a response of Gemini’s what it may not have within', () => {
    const items = fitted('a film and a link in a response of Gemini’s').items.slice(2)
    expect(items.map(({ parts }: Item) => parts.map((part: Item) => Object.keys(part)[0]))).toEqual([
      ['functionResponse'],
      ['inlineData', 'fileData'],
    ])
    expect(items[0].parts[0].functionResponse.parts).toEqual([
      { inlineData: { mimeType: 'image/png', data: PNG } },
    ])
    expect(items[1].parts[0]).toEqual({ inlineData: { mimeType: 'video/mp4', data: 'AAAA' } })
  })

  it('keeps what Anthropic and Google signed, and lets go what they did not', () => {
    const { items } = fitted('thoughts that others signed in Anthropic’s format')
    const said = items
      .filter(({ role }: Item) => role === 'assistant')
      .map(({ content }: Item) => content.map(({ type }: Item) => type))
    expect(said).toEqual([
      ['text'],
      ['text'],
      ['thinking', 'text'],
      ['tool_use', 'tool_use', 'tool_use'],
      ['thinking', 'text'],
    ])
    expect(fitted('signatures that are no base64').items[1].parts).toEqual([
      { text: 'Hm', thought: true },
      { functionCall: { name: 'f', args: {} }, thoughtSignature: 'skip_thought_signature_validator' },
    ])
  })

  it('keeps code that the API runs once a tool has answered, until somebody speaks', () => {
    const [, blobs] = REFUSED['code that waits beside a call']!
    expect(sent('anthropic', 'anthropic', blobs).items).toEqual(blobs)
    const { items, omitted } = sent('anthropic', 'anthropic', [...blobs, user(says('z'))])
    expect(items[1].content).toEqual([use('a')])
    expect(omitted).toEqual([{ id: messageId(1), reason: 'no_result', call_id: 'srvtoolu_s' }])
  })

  it('has one answer to a request for approval', () => {
    const { items, omitted } = fitted('an approval that was given twice')
    expect(items).toEqual(REFUSED['an approval that was given twice']![1].slice(0, 3))
    expect(omitted).toEqual([{ id: messageId(2), reason: 'duplicate_result', call_id: 'mcpr_1' }])
  })

  it('has long arguments without the white space in them, or none, and results up to where they are too long', () => {
    const { items, omitted } = fitted('arguments and results that are too long')
    expect(items[1].tool_calls.map((one: Item) => one.function.arguments)).toEqual(['{"code":"x"}', '{}'])
    expect(omitted).toEqual([{ id: messageId(1), reason: 'not_in_format', what: 'arguments' }])
    expect(items[2].content.endsWith('😀\n[The rest is too long.]')).toBe(true)
  })

  it('cites all documents or none, as the first one says', () => {
    const { items } = fitted('documents of which one is cited')
    const blocks = items
      .flatMap(({ content }: Item) => content)
      .flatMap((block: Item) => [block, ...(block.content ?? [])])
    const of = (type: string) =>
      blocks.filter((block: Item) => block.type === type).map(({ citations }: Item) => citations)
    expect(of('document')).toEqual([{ enabled: true }, { enabled: true }])
    expect(of('search_result')).toEqual([undefined, undefined])
  })
})
