import { gzipSync } from 'node:zlib'
import { SessionReader } from '@annals/messages/session'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectError, expectOk } from '../harness/expectations.ts'
import { BEGAN_AT, otlpAttributes, sendTraces, type TestSpan, tracesBody } from '../harness/otlp.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog, type TimelineItem } from '../harness/session_log.ts'
import { issueToken } from '../harness/tokens.ts'

const service = useSharedService()
let api: ApiClient

beforeEach(async () => {
  api = await service.newClient({ token: (await service.newProject()).token })
})

const said = (role: string, content: string) => ({ role, parts: [{ type: 'text', content }] })

/** A call of a model, with all that was said before. */
function chat(id: string, at: number, session: string, history: object[], answer: object): TestSpan {
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.conversation.id': session,
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.input.messages': JSON.stringify(history),
    'gen_ai.output.messages': JSON.stringify([answer]),
  }
  return { id, from: at, to: at + 5, name: 'chat gpt-5', attributes }
}

async function logs(): Promise<TimelineItem[][]> {
  const { items } = expectOk(await api.listSessions())
  return Promise.all(
    items.map(async ({ id }) => expectOk(await sessionLog(api, id).timeline({ limit: 1_000 })).items),
  )
}

const linesOf = (items: TimelineItem[]) =>
  items.map(({ kind, type, blob }) => (kind === 'event' ? type : (blob as { content: unknown }).content))

describe('spans of a conversation', () => {
  it('become a session in which each message stands once, with the time of its span', async () => {
    const history: object[] = []
    const spans: TestSpan[] = []
    for (let turn = 1; turn <= 3; turn++) {
      history.push(said('user', `question ${turn}`))
      const answer = said('assistant', `answer ${turn}`)
      spans.push(chat(String(turn), turn * 1_000, 'c-1', history, answer))
      history.push(answer)
    }
    const answer = await sendTraces(api, spans)
    expect([answer.status, answer.json]).toEqual([200, {}])
    const [items] = await logs()
    expect(linesOf(items!)).toEqual([
      ...['question 1', 'otel.span', 'answer 1', 'question 2', 'otel.span', 'answer 2'],
      ...['question 3', 'otel.span', 'answer 3'],
    ])
    expect(items!.map(({ occurred_at }) => occurred_at).slice(0, 3)).toEqual([
      '2026-01-02T03:04:06.000000Z',
      ...Array<string>(2).fill('2026-01-02T03:04:06.005000Z'),
    ])
    expect(items![1]!.data).toMatchObject({
      ...{ name: 'chat gpt-5', operation: 'model', model: 'gpt-5', usage: { input_tokens: 10 } },
      ...{ started_at: '2026-01-02T03:04:06.000000Z', duration_ms: 5, messages: { last_id: items![2]!.id } },
    })
  })

  it('are stored once, however often and in whatever order they are sent, by many at once', async () => {
    const spans = conversation('c-2', 4)
    for (const span of spans.toReversed()) expect((await sendTraces(api, [span])).status).toBe(200)
    const before = (await logs()).flat()
    expect(before).toHaveLength(4 + 8)
    const again = [spans, spans.toReversed(), spans.slice(1), spans].map((list) => sendTraces(api, list))
    for (const { status, json } of await Promise.all(again)) expect([status, json]).toEqual([200, {}])
    expect((await logs()).flat()).toEqual(before)

    const fresh = await service.newClient({ token: (await service.newProject()).token })
    const racing = Array.from({ length: 6 }, () => sendTraces(fresh, conversation('c-3', 4)))
    for (const { status, text } of await Promise.all(racing)) expect(status, text).toBe(200)
    api = fresh
    const [items] = await logs()
    expect(linesOf(items!).toSorted()).toEqual(linesOf(before).toSorted())
  })

  it('may repeat 200 turns of history: each message is stored once', async () => {
    const spans = conversation('c-4', 200)
    for (let from = 0; from < 200; from += 50) {
      const answer = await sendTraces(api, spans.slice(from, from + 50))
      expect([answer.status, answer.json]).toEqual([200, {}])
    }
    const [items] = await logs()
    const messages = linesOf(items!).filter((line) => line !== 'otel.span')
    const said = Array.from({ length: 200 }, (_, turn) => [`question ${turn + 1}`, `answer ${turn + 1}`])
    expect(messages).toEqual(said.flat())
    expect(items).toHaveLength(600)
  })

  it('say so where they do not go on with what was said before', async () => {
    await sendTraces(api, conversation('c-5', 2))
    const summary = [said('user', 'a summary'), said('user', 'question 3')]
    await sendTraces(api, [chat('9', 9_000, 'c-5', summary, said('assistant', 'answer 3'))])
    const [items] = await logs()
    expect(linesOf(items!).slice(6)).toEqual([
      ...['annals.context_changed', 'a summary', 'question 3', 'otel.span', 'answer 3'],
    ])
  })
})

/** So many turns, each a span that repeats all before it. */
function conversation(session: string, turns: number): TestSpan[] {
  const history: object[] = []
  return Array.from({ length: turns }, (_, index) => {
    const turn = index + 1
    history.push(said('user', `question ${turn}`))
    const answer = said('assistant', `answer ${turn}`)
    const span = chat(String(turn), turn * 1_000, session, [...history], answer)
    history.push(answer)
    return span
  })
}

const plain = (
  id: string,
  attributes: Record<string, unknown> = {},
  more: Partial<TestSpan> = {},
): TestSpan => ({
  ...{ id, attributes },
  ...more,
})

describe('a span', () => {
  it('belongs to the session that it, or the rest of its trace, names; else to its trace; and to its user', async () => {
    const trace = 'f'.repeat(32)
    const answer = await sendTraces(api, [
      plain('1', { 'session.id': 'second', 'gen_ai.conversation.id': 'first', 'user.id': 'ada' }),
      plain('2', {}, { parent: '1' }),
      plain('3', { 'langfuse.session.id': 'third' }, { trace: 'e'.repeat(32) }),
      plain('4', {}, { trace }),
    ])
    expect(answer.status, answer.text).toBe(200)
    const { items } = expectOk(await api.listSessions())
    const byName = new Map(
      items.map((session) => [Object.values(session.configs.otel as object)[0], session]),
    )
    expect([...byName.keys()].toSorted()).toEqual(['first', 'third', trace].toSorted())
    const { user_id, configs, id } = byName.get('first')!
    expect(configs).toEqual({
      source: 'opentelemetry',
      service: 'shop',
      otel: { 'gen_ai.conversation.id': 'first' },
    })
    expect(user_id).not.toBeNull()
    expect(expectOk(await sessionLog(api, id).timeline()).items).toHaveLength(2)
    // What its later spans tell is added, and what was known stays.
    await sendTraces(api, [plain('5', { 'gen_ai.conversation.id': 'first', 'gen_ai.request.model': 'm' })], {
      'service.name': 'other',
      'deployment.environment.name': 'test',
    })
    expect(expectOk(await api.getSession(id)).configs).toMatchObject({
      service: 'shop',
      model: 'm',
      environment: 'test',
    })
  })

  it('keeps every attribute, with all digits; what nests too deep or is too long is refused alone', async () => {
    let deep: unknown = 'x'
    for (let level = 0; level < 60; level++) deep = [deep]
    const odd = {
      big: 9_007_199_254_740_993n,
      nul: 'a\u0000b',
      list: [1, 'b', false],
      __proto__x: 1.5,
      map: { a: { b: 1 } },
    }
    const long = Array.from({ length: 30 }, () => 'x'.repeat(50_000))
    const answer = await sendTraces(api, [plain('1', odd), plain('2', { deep }), plain('3', { long })])
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json.partialSuccess).toEqual({
      rejectedSpans: '2',
      errorMessage: expect.stringContaining('nests deeper'),
    })
    const { items } = expectOk(await api.listSessions())
    const { text } = await sessionLog(api, items[0]!.id).timeline()
    expect(text).toContain('"big": 9007199254740993')
    expect(text).toContain('"nul": "a\ufffdb"')
    expect(JSON.parse(text).data.items[0].data.attributes).toMatchObject({
      list: [1, 'b', false],
      map: { a: { b: 1 } },
    })
  })

  it('of a tool is a call with its result, joined to what the model asked for', async () => {
    const call = {
      role: 'assistant',
      parts: [{ type: 'tool_call', id: 'c1', name: 'find', arguments: { q: 1 } }],
    }
    const tool = {
      ...{
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.conversation.id': 't',
        'gen_ai.tool.name': 'find',
      },
      ...{ 'gen_ai.tool.call.id': 'c1', 'gen_ai.tool.call.arguments': '{"q":1}', 'error.type': 'Timeout' },
    }
    const status = { code: 2, message: 'gave up' }
    await sendTraces(api, [
      chat('1', 0, 't', [said('user', 'Find it.')], call),
      { id: '2', from: 10, to: 1_510, name: 'execute_tool find', attributes: tool, status },
    ])
    const [items] = await logs()
    const reader = new SessionReader()
    const calls = items!
      .flatMap((item) => reader.read(item as never).blocks)
      .filter((block) => block.kind === 'call')
    expect(calls.map(({ is_repeat }) => is_repeat)).toEqual([false, true])
    expect(calls[0]!.call).toMatchObject({
      ...{ id: 'c1', name: 'find', verdict: 'failed' },
      result: { text: 'gave up', duration_ms: 1_500 },
    })
  })
})

describe('logs', () => {
  it('of a coding agent become events of its session, each once', async () => {
    const record = (name: string, ms: number, attributes: object) => ({
      timeUnixNano: `${BEGAN_AT + ms}000000`,
      body: { stringValue: `claude_code.${name}` },
      attributes: otlpAttributes({
        'event.name': name,
        'session.id': 'cc',
        'user.id': 'grace',
        ...attributes,
      }),
    })
    const logRecords = [
      record('tool_result', 2_000, {
        tool_name: 'Bash',
        success: 'false',
        duration_ms: '640',
        error: 'exit 1',
      }),
      record('api_request', 1_000, { model: 'claude-x', input_tokens: '12', output_tokens: '3' }),
      { timeUnixNano: '1', body: { stringValue: 'of nobody' } },
    ]
    const body = { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }
    for (let sent = 0; sent < 2; sent++) {
      const answer = await api.request('POST', '/api/v1/otel/v1/logs', { body })
      expect([answer.status, answer.json]).toEqual([
        200,
        {
          partialSuccess: {
            rejectedLogRecords: '1',
            errorMessage: expect.stringContaining('neither a session'),
          },
        },
      ])
    }
    const [items] = await logs()
    expect(items!.map(({ type, data }) => [type, (data as { name: string }).name])).toEqual([
      ['otel.log', 'api_request'],
      ['otel.log', 'tool_result'],
    ])
    expect(items![1]!.data).toMatchObject({
      tool: { name: 'Bash', is_error: true },
      error: 'exit 1',
      duration_ms: 640,
    })
    expect(items![0]!.data).toMatchObject({
      model: 'claude-x',
      usage: { input_tokens: 12, output_tokens: 3 },
    })
  })
})

describe('messages in records of logs', () => {
  const record = (name: string, ms: number, span: string, body: Record<string, unknown>) => ({
    ...{ observedTimeUnixNano: `${BEGAN_AT + ms}000000`, eventName: name, spanId: span.padStart(16, '0') },
    ...{ traceId: 'a'.repeat(32), body: { kvlistValue: { values: otlpAttributes(body) } } },
    attributes: otlpAttributes({ 'gen_ai.conversation.id': 'logged' }),
  })

  it('are one conversation, also where an answer comes in a later request than the question', async () => {
    const asked = [record('gen_ai.user.message', 0, '1', { content: 'question 1' })]
    const answered = [
      record('gen_ai.choice', 9_000, '1', { index: 0, message: { role: 'assistant', content: 'answer 1' } }),
    ]
    const next = [
      record('gen_ai.user.message', 20_000, '2', { content: 'question 1' }),
      record('gen_ai.assistant.message', 20_000, '2', { content: 'answer 1' }),
      record('gen_ai.user.message', 20_000, '2', { content: 'question 2' }),
    ]
    for (const logRecords of [asked, answered, answered, next, asked]) {
      const body = { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }
      const answer = await api.request('POST', '/api/v1/otel/v1/logs', { body })
      expect([answer.status, answer.json]).toEqual([200, {}])
    }
    const [items] = await logs()
    expect(linesOf(items!)).toEqual([
      ...['question 1', 'otel.log', 'otel.log', 'answer 1', 'question 2'],
      ...['otel.log', 'otel.log', 'otel.log'],
    ])
    expect(items![3]!.occurred_at).toBe('2026-01-02T03:04:14.000000Z')
  })
})

describe('a body', () => {
  const send = (rawBody: string | Buffer, type: string, headers: Record<string, string> = {}) =>
    api.request('POST', '/api/v1/otel/v1/traces', { rawBody, headers: { 'Content-Type': type, ...headers } })
  const PROTOBUF = 'application/x-protobuf'
  const JSON_TYPE = 'application/json'

  it.each<[string, string | Buffer, string, Record<string, string>, number, string]>([
    ['no protobuf', Buffer.from('ffffffffff', 'hex'), PROTOBUF, {}, 400, 'invalid_request'],
    ['a protobuf that is cut', Buffer.from('0a7f0a01', 'hex'), PROTOBUF, {}, 400, 'invalid_request'],
    ['no JSON', '{', JSON_TYPE, {}, 400, 'invalid_request'],
    ['JSON that is no OTLP', '{"resourceSpans":{}}', JSON_TYPE, {}, 400, 'invalid_request'],
    ['deep JSON', '['.repeat(100_000), JSON_TYPE, {}, 400, 'invalid_request'],
    [
      'a list of nothing, a million times',
      `[${'{},'.repeat(1_000_000)}{}]`,
      JSON_TYPE,
      {},
      413,
      'payload_too_large',
    ],
    ['spans of nothing', protobufOfNothing(), PROTOBUF, {}, 413, 'payload_too_large'],
    ['another type', 'x', 'text/plain', {}, 415, 'unsupported_media_type'],
    ['another encoding', 'x', PROTOBUF, { 'Content-Encoding': 'br' }, 415, 'unsupported_media_type'],
    ['no gzip', 'x'.repeat(100), PROTOBUF, { 'Content-Encoding': 'gzip' }, 400, 'invalid_request'],
    [
      'a bomb',
      gzipSync(Buffer.alloc(64 * 1024 * 1024)),
      PROTOBUF,
      { 'Content-Encoding': 'gzip' },
      413,
      'payload_too_large',
    ],
    ['too much', Buffer.alloc(9 * 1024 * 1024), PROTOBUF, {}, 413, 'payload_too_large'],
  ])('of %s is refused, and nothing is stored', async (_name, body, type, headers, status, error) => {
    expectError(await send(body, type, headers), status, error)
    expect(expectOk(await api.listSessions()).items).toEqual([])
  })

  it('may be gzip, and empty', async () => {
    const body = gzipSync(JSON.stringify(tracesBody([plain('1')])))
    expect((await send(body, JSON_TYPE, { 'Content-Encoding': 'gzip' })).status).toBe(200)
    expect((await logs())[0]).toHaveLength(1)
    const nothing = await send(Buffer.alloc(0), PROTOBUF)
    expect([nothing.status, nothing.text, nothing.headers['content-type']]).toEqual([200, '', PROTOBUF])
  })

  it('may come with a key that can do nothing else', async () => {
    const project = await service.newProject()
    const { token } = await issueToken(service.adminClient(), project.id, { name: 'i', scopes: ['ingest'] })
    const sender = await service.newClient({ token })
    expect((await sendTraces(sender, [plain('1')])).status).toBe(200)
    expectError(await sender.listSessions(), 403, 'insufficient_scope', 'read')
    expectError(await sender.createSession({}), 403, 'insufficient_scope')
    const reader = await issueToken(service.adminClient(), project.id, { name: 'r', scopes: ['read'] })
    api = await service.newClient({ token: reader.token })
    expect((await logs())[0]).toHaveLength(1)
    expectError(await send('{}', JSON_TYPE), 403, 'insufficient_scope', 'ingest')
  })
})

/** A million spans without anything. */
function protobufOfNothing(): Buffer {
  const spans = Buffer.from('1200'.repeat(1_000_000), 'hex')
  const field = (tag: number, value: Buffer) => {
    const length: number[] = []
    for (let left = value.length; ; left >>>= 7) {
      length.push(left > 127 ? (left & 127) | 128 : left)
      if (left <= 127) break
    }
    return Buffer.concat([Buffer.from([tag, ...length]), value])
  }
  return field(0x0a, field(0x12, spans))
}
