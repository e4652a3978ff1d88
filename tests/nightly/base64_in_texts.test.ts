import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes } from '../harness/blobs.ts'
import { openTail } from '../harness/event_stream.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog, sessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'

const MEGABYTE = 1024 * 1024
const FORMATS = ['openai', 'anthropic', 'gemini', 'responses', 'acontext']
const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

/** More of a body: it is too long, and arguments are short enough for OpenAI. */
const filler = 'a word '.repeat(8_700)
const base64Of = (length: number) => newBytes(length).toString('base64')
const urlSafe = (data: string) => data.replaceAll('+', '-').replaceAll('/', '_')

const asks = { role: 'user', content: 'Look' }
const calls = (name: string, text: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: text } }],
})
const tells = (content: unknown) => ({ role: 'tool', tool_call_id: 'call_1', content })
const uses = (input: object) => ({
  role: 'assistant',
  content: [{ type: 'tool_use', id: 'toolu_1', name: 'write_file', input }],
})
const gives = (content: unknown) => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }],
})

/** Where agents have base64 in the middle of something else: a conversation for each, in one format. */
const PLACES: Array<[string, string, (data: string) => object[]]> = [
  ['openai', 'a whole text', (data) => [{ role: 'user', content: data }]],
  [
    'openai',
    'a part of text',
    (data) => [{ role: 'user', content: [{ type: 'text', text: `Decode ${data}` }] }],
  ],
  [
    'openai',
    'Markdown with two pictures',
    (data) => [
      {
        role: 'assistant',
        content: `“Grüße”\n\n![one](data:image/png;base64,${data})\n\n![two](data:image/jpeg;base64,${data})\n`,
      },
    ],
  ],
  [
    'openai',
    'the JSON that a tool returned',
    (data) => [asks, calls('shoot', '{}'), tells(JSON.stringify({ ok: true, image: data, size: [1, 2] }))],
  ],
  [
    'openai',
    'JSON in JSON that a tool returned',
    (data) => [
      asks,
      calls('shoot', '{}'),
      tells([{ type: 'text', text: JSON.stringify({ content: [{ text: JSON.stringify({ data }) }] }) }]),
    ],
  ],
  [
    'openai',
    'the arguments of a call',
    (data) => [asks, calls('write_file', JSON.stringify({ path: 'a.png', content: data })), tells('ok')],
  ],
  [
    'openai',
    'the input of a custom call',
    (data) => [
      asks,
      {
        role: 'assistant',
        tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'run', input: `x = "${data}"` } }],
      },
      tells('ok'),
    ],
  ],
  [
    'openai',
    'a field that nobody knows',
    (data) => [{ role: 'user', content: 'Hi', attachments: [{ body: data }] }],
  ],
  [
    'anthropic',
    'a text',
    (data) => [
      { role: 'user', content: [{ type: 'text', text: `<img src="data:image/gif;base64,${data}">` }] },
    ],
  ],
  ['anthropic', 'the input of a call', (data) => [asks, uses({ path: 'a.png', content: data }), gives('ok')]],
  ['anthropic', 'a result', (data) => [asks, uses({}), gives(data)]],
  [
    'anthropic',
    'the text of a result',
    (data) => [
      asks,
      uses({}),
      gives([{ type: 'text', text: `{"screenshot":"data:image/png;base64,${data}"}` }]),
    ],
  ],
  ['gemini', 'a text', (data) => [{ role: 'user', parts: [{ text: `Decode\n${urlSafe(data)}\nnow` }] }]],
  [
    'gemini',
    'the arguments and the response of a function',
    (data) => [
      { role: 'user', parts: [{ text: 'Look' }] },
      { role: 'model', parts: [{ functionCall: { id: 'a', name: 'save', args: { data } } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'a', name: 'save', response: { image: { data }, n: 1 } } }],
      },
    ],
  ],
  [
    'responses',
    'the arguments and the output of a call',
    (data) => [
      { role: 'user', content: 'Look' },
      {
        type: 'function_call',
        call_id: 'a',
        name: 'save',
        arguments: JSON.stringify({ data: urlSafe(data) }),
      },
      { type: 'function_call_output', call_id: 'a', output: JSON.stringify([{ type: 'image', data }]) },
    ],
  ],
  [
    'acontext',
    'a result and a text',
    (data) => [
      { role: 'user', parts: [{ type: 'text', text: `Look ${data}` }] },
      { role: 'assistant', parts: [{ type: 'tool-call', meta: { id: 'a', name: 'save', arguments: '{}' } }] },
      { role: 'user', parts: [{ type: 'tool-result', text: data, meta: { tool_call_id: 'a' } }] },
    ],
  ],
]

/** Compares long values without showing them. */
const expectSame = (one: unknown, other: unknown) => expect(isDeepStrictEqual(one, other)).toBe(true)

async function logOf(format: string, blobs: object[]): Promise<SessionLog> {
  const log = await newSessionLog(api)
  for (const blob of blobs) expectOk(await log.add(blob, { format, meta: { filler } }), 201)
  return log
}

const contextOf = async (log: SessionLog, format: string) =>
  expectOk(
    await api.request<{ items: object[] }>('GET', `/api/v1/session/${log.id}/context`, { query: { format } }),
  )

/** What is shown, with short base64 in place of long, and without what differs between two sessions. */
function shownAs(items: unknown, long: string, short: string): unknown {
  let text = JSON.stringify(items)
  // In JSON, in JSON in JSON, and so on: each escapes the breaks of lines once more.
  let [was, is] = [long, short]
  for (let level = 0; level < 4; level++) {
    ;[was, is] = [JSON.stringify(was).slice(1, -1), JSON.stringify(is).slice(1, -1)]
    text = text.replaceAll(was, is).replaceAll(urlSafe(was), urlSafe(is))
  }
  return JSON.parse(text, (key, value) => (/_at$|^id$|session_id|parent_id/.test(key) ? undefined : value))
}

const inLines = (data: string, width: number, line_break: string) =>
  data.match(new RegExp(`.{1,${width}}`, 'g'))!.join(line_break)
/** `bytes`: with its breaks, it is too long for a body and short enough for arguments of OpenAI's. */
const WRITTEN: Array<[string, bytes: number, read_as: string[], (data: string) => string]> = [
  ['in one line', 786_290, FORMATS, (data) => data],
  ['in lines of MIME', 722_000, ['openai', 'anthropic'], (data) => `${inLines(data, 76, '\r\n')}\r\n`],
]

describe.each(WRITTEN)('long base64 in a text, %s,', (_, bytes, read_as, written) => {
  it.each(PLACES)(
    'of %s, %s, is no reason to refuse it, and comes back to the character',
    async (format, _, say) => {
      const [short, long] = [written(base64Of(3_000)), written(base64Of(bytes))]
      const [sent, log] = [say(long), await logOf(format, say(long))]
      const rows = await queryRows(
        service.databaseUrl,
        'SELECT data::text FROM entries WHERE session_id = $1',
        [log.id],
      )
      for (const { data } of rows) expect(String(data).length).toBeLessThan(3_000)
      if (format !== 'acontext') expectSame(expectOk(await log.list({ format })).items, sent)
      expectSame(
        expectOk(await log.timeline()).items.map(({ blob }) => blob),
        sent,
      )
      const like = await logOf(format, say(short))
      for (const other of read_as) {
        const pages = [
          expectOk(await log.list({ format: other })),
          expectOk(await like.list({ format: other })),
        ]
        expectSame(shownAs(pages[0]!.items, long, short), shownAs(pages[1]!.items, long, short))
        const contexts = [await contextOf(log, other), await contextOf(like, other)]
        expectSame(shownAs(contexts[0]!.items, long, short), shownAs(contexts[1]!.items, long, short))
      }
    },
  )

  it('is cleared with its result, which says how long it was', async () => {
    const data = written(base64Of(MEGABYTE))
    const log = await logOf('openai', [asks, calls('shoot', '{}'), tells(data), asks])
    const context = await api.request<{ items: Array<{ content: string }> }>(
      'GET',
      `/api/v1/session/${log.id}/context`,
      { query: { keep_tool_results: 0, max_tokens: 2_000_000 } },
    )
    expect(expectOk(context).items[2]!.content).toBe(`[result cleared: seq 3, ${data.length} characters]`)
  })
})

describe('long base64 in a text', () => {
  it('in a place for bytes goes to the next model without its lines', async () => {
    const bytes = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), newBytes(MEGABYTE)])
    const plain = bytes.toString('base64')
    const data = `${inLines(plain, 76, '\n')}\n`
    const source = { type: 'base64', media_type: 'image/png', data }
    const image = { role: 'user', content: [{ type: 'image', source }] }
    const inlineData = { mimeType: 'image/png', data }
    for (const [format, blob] of [
      ['anthropic', image],
      ['gemini', { role: 'user', parts: [{ inlineData }] }],
    ] as const) {
      const log = await logOf(format, [blob])
      expectSame(expectOk(await log.list({ format })).items, [blob])
      for (const other of FORMATS) {
        const text = JSON.stringify((await contextOf(log, other)).items)
        expect(text.includes(plain)).toBe(true)
        if (other !== 'acontext') expect(text).toContain('image/jpeg')
      }
    }
  })

  it('may have 18 MiB of bytes, in a batch and sent again, too', { timeout: 60_000 }, async () => {
    const log = await newSessionLog(api)
    const image = inLines(base64Of(18 * MEGABYTE), 76, '\n')
    const blob = tells(JSON.stringify({ page: 1, image }))
    const entries = [{ kind: 'message', blob, id: '01890000-0000-7000-8000-000000000002' }]
    const stored = expectOk(await log.batch(entries), 201)
    expectSame(expectOk(await log.batch(entries), 201), stored)
    expectSame(expectOk(await log.list()).items, [blob])
  })

  it('comes back on a tail, in a fork, and when it is retracted', async () => {
    const log = await newSessionLog(api)
    const blob = tells(`{"image": "${base64Of(MEGABYTE)}"}`)
    const tail = await openTail(service.node.url, project.token, log.id)
    expectOk(await log.add(blob), 201)
    const [streamed] = await tail.received(1)
    expectSame(streamed!.item.blob, blob)
    tail.close()
    const { new_session_id } = expectOk(await log.copy())
    expectSame(expectOk(await sessionLog(api, new_session_id).timeline()).items[0]!.blob, blob)
    const path = `/api/v1/session/${log.id}/retractions`
    const popped = await api.request<{ items: Array<{ blob: object }> }>('POST', path, { body: { last: 1 } })
    expectSame(expectOk(popped).items[0]!.blob, blob)
  })

  it('counts as many tokens as it has, nearly', async () => {
    const data = base64Of(600_000)
    const alone = await logOf('openai', [tells(data)])
    const twice = await logOf('openai', [tells(`${data} ${data}`)])
    const tokens = async (log: SessionLog) =>
      expectOk(await api.request<{ total_tokens: number }>('GET', `/api/v1/session/${log.id}/token_counts`))
        .total_tokens
    const [one, two] = [await tokens(alone), await tokens(twice)]
    expect(Math.abs(two - 2 * one) / one).toBeLessThan(0.05)
  })

  it('stays in the text of a body that is short enough, and in meta and events', async () => {
    const log = await logOf('openai', [tells(base64Of(600_000))])
    const [row] = await queryRows(
      service.databaseUrl,
      'SELECT data::text FROM entries WHERE session_id = $1',
      [log.id],
    )
    expect(String(row!.data).length).toBeGreaterThan(800_000)
    const data = base64Of(MEGABYTE)
    expectError(await log.addEvent('note', { text: `a ${data}` }), 413, 'payload_too_large')
    expectError(await log.add(asks, { meta: { data } }), 413, 'payload_too_large')
  })

  it('is no excuse for words, dashes or digits of that length', async () => {
    const log = await newSessionLog(api)
    for (const text of ['word '.repeat(300_000), 'a'.repeat(1_500_000), newBytes(MEGABYTE).toString('hex')])
      expectError(await log.add({ role: 'user', content: text }), 413, 'payload_too_large')
  })

  it('cannot be claimed by a text with escapes that look like its marks', async () => {
    const mark = `\u0000x9x${'a'.repeat(64)}`
    const log = await logOf('openai', [
      asks,
      calls('look', JSON.stringify({ mark, bytes: mark.replace('x9x', '') })),
      tells('ok'),
    ])
    for (const other of FORMATS)
      expect(JSON.stringify((await contextOf(log, other)).items)).toContain('a'.repeat(64))
  })

  it('only looks like it in what a caller wrote, which comes back as it was sent', async () => {
    const log = await newSessionLog(api)
    const texts = [
      ['a', { media_type: 'a/b', annals_blob: 'a'.repeat(64), annals_inline: '', bytes: 3 }],
      ['a', 1],
      [],
    ]
    const meta = { texts: texts.map((annals_text) => ({ annals_text })) }
    expectOk(await log.add(asks, { meta }), 201)
    expect(expectOk(await log.timeline()).items[0]!.meta).toEqual(meta)
  })

  it('may be sent as it is stored, if its size is one that a text can have', async () => {
    const log = await newSessionLog(api)
    const bytes = newBytes(MEGABYTE)
    expectOk(await log.add({ role: 'user', content: `Look ${bytes.toString('base64')}` }), 201)
    const annals_blob = createHash('sha256').update(bytes).digest('hex')
    const stored = (size: number, lines?: object) => {
      const reference = { media_type: 'a/b', annals_blob, annals_inline: '', bytes: size, ...lines }
      return { role: 'user', content: { annals_text: ['Look ', reference] } }
    }
    for (const size of [-5, 0, 25 * MEGABYTE + 1, 3e9, Number.MAX_SAFE_INTEGER])
      expectError(await log.add(stored(size)), 400, 'invalid_request', '/blob/content ')
    for (const lines of [
      { width: 76 },
      { break: '\n' },
      { break: '\\', width: 76 },
      { break: ', ', width: 76 },
      { break: '\n', width: 0 },
      { break: '\n', width: 1e300 },
      { break: ['\n'], width: '76' },
    ])
      expectError(await log.add(stored(bytes.length, lines)), 400, 'invalid_request', '/blob/content ')
    expectOk(await log.add(stored(bytes.length)), 201)
    const [sent, again] = expectOk(await log.list()).items
    expect(isDeepStrictEqual(again, sent)).toBe(true)
  })
})
