import { gzipSync, strToU8, zipSync } from 'fflate'
import { describe, expect, it } from 'vitest'
import { blobsIn, entriesIn, formatOf, leftIn, lines, outline, recordsOf, tallyOf } from './reading.ts'

const json = JSON.stringify
const CHAT = {
  messages: [
    { role: 'user', content: 'Hi, Zoë' },
    { role: 'assistant', content: 'Hello.' },
  ],
}

describe('a file', () => {
  it('may be UTF-16, with or without a byte order mark, or UTF-8 with one', async () => {
    const utf16 = Buffer.from(lines(CHAT), 'utf16le')
    const files = [
      utf16,
      Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
      Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]),
      Buffer.from(`\uFEFF${lines(CHAT)}`),
      Buffer.from(`\uFEFF${json([CHAT], null)}`),
    ]
    for (const bytes of files)
      for (const chunk of [1, 7, bytes.length]) {
        const records = await recordsOf('chat.jsonl', bytes, { chunk })
        expect(blobsIn(records)).toEqual(CHAT.messages)
      }
  })

  it('may have the numbers of Python that are none', async () => {
    const text = `${json(CHAT).slice(0, -1)},"score":NaN,"metrics":{"a":[Infinity,-Infinity],"say":"NaN \\" NaN"}}\n`
    const records = await recordsOf('chat.jsonl', text)
    expect(tallyOf(records)).toMatchObject({ mapped: 1, refused: 0 })
    expect(json(entriesIn(records))).toContain('"a":["Infinity","-Infinity"],"say":"NaN \\" NaN"')
    expect(json(entriesIn(records))).toContain('"score":"NaN"')
  })

  it('that was cut within its packing is read up to there, and named', async () => {
    const whole = Array.from({ length: 2_000 }, (_, at) =>
      json({ ...CHAT, id: `c${at}`, pad: Math.sin(at) }),
    ).join('\n')
    const packed = gzipSync(strToU8(whole))
    const records = await recordsOf('chats.jsonl.gz', packed.subarray(0, packed.length - 2_000), {
      chunk: 4_096,
    })
    expect(records.filter(({ kind }) => kind === 'session').length).toBeGreaterThan(500)
    expect(records.find((record) => record.kind === 'refused')).toMatchObject({
      place: { file: 'chats.jsonl' },
      reason: expect.stringContaining('cut off'),
    })
    const archive = zipSync({ 'a.jsonl': strToU8(lines(CHAT)), 'b.jsonl': strToU8(whole) })
    const inside = await recordsOf('chats.zip', archive.subarray(0, archive.length - 4_000), { chunk: 4_096 })
    expect(blobsIn(inside).slice(0, 2)).toEqual(CHAT.messages)
    expect(inside.find((record) => record.kind === 'refused')).toMatchObject({
      place: { file: 'chats.zip/b.jsonl' },
    })
  })

  it.each([
    ['an empty file', new Uint8Array(0), 'x is empty.'],
    ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0]), 'x is packed by zstd: unpack it first.'],
    [
      'SQLite',
      Buffer.from('SQLite format 3\0'),
      'x is a SQLite database: export its sessions as JSON first.',
    ],
    ['Parquet', Buffer.from('PAR1xx'), 'x is a Parquet file: write it as JSON lines first.'],
  ])('that is %s is refused in words that say so', async (_, bytes, said) => {
    await expect(recordsOf('x', bytes)).rejects.toThrow(said)
  })
})

describe('Claude Code', () => {
  const answer = (id: string, block: object, output_tokens: number) => ({
    type: 'assistant',
    uuid: `${id}-${output_tokens}`,
    sessionId: 's',
    parentUuid: null,
    message: {
      id,
      role: 'assistant',
      type: 'message',
      model: 'm',
      content: [block],
      usage: { output_tokens },
    },
  })

  it('writes a block again as it grows: the last one counts', async () => {
    const records = await recordsOf(
      's.jsonl',
      lines(
        answer('a', { type: 'text', text: 'It is' }, 1),
        answer('a', { type: 'text', text: 'It is cold.' }, 9),
        answer('a', { type: 'tool_use', id: 't1', name: 'f', input: {} }, 12),
        answer('b', { type: 'text', text: 'It is' }, 3),
      ),
    )
    expect(leftIn(records).map((blob) => (blob as typeof CHAT & { usage: object }).usage)).toEqual([
      { output_tokens: 9 },
      { output_tokens: 12 },
      { output_tokens: 3 },
    ])
  })

  it.each([
    ['lines', (...all: unknown[]) => lines(...all)],
    ['a list', (...all: unknown[]) => json(all)],
  ])(
    'writes what a run says to its output as %s, with its subagents and how it ended',
    async (_, written) => {
      const said = (text: string, parent: string | null) => ({
        type: 'assistant',
        session_id: 's',
        parent_tool_use_id: parent,
        message: { id: text, role: 'assistant', content: [{ type: 'text', text }] },
      })
      const text = written(
        {
          type: 'system',
          subtype: 'init',
          session_id: 's',
          cwd: '/w',
          model: 'm',
          claude_code_version: '2.1',
        },
        said('Hello.', null),
        said('Below.', 't1'),
        { type: 'stream_event', session_id: 's', event: {} },
        {
          type: 'result',
          subtype: 'success',
          is_error: false,
          session_id: 's',
          total_cost_usd: 0.1,
          num_turns: 1,
        },
      )
      expect(outline(await recordsOf('run.jsonl', text))).toEqual([
        's1 {"agent":"claude-code","cwd":"/w","version":"2.1"}',
        's1 {"model":"m"}',
        's1 source.claude-code.system.init',
        's1 anthropic assistant',
        's2 below s1 {"agent":"claude-code","subagent":true}',
        's2 anthropic assistant',
        's1 source.claude-code.stream_event (noise)',
        's1 source.claude-code.result.success',
        's1 outcome',
      ])
    },
  )
})

describe('Codex', () => {
  const line = (type: string, payload: object) => ({ timestamp: '2026-10-01T10:00:00Z', type, payload })
  const said = (role: string, text: string) =>
    line('response_item', { type: 'message', role, content: [{ type: 'input_text', text }] })

  it('takes back the turns that were rolled back, and is called as its thread', async () => {
    const records = await recordsOf(
      'rollout.jsonl',
      lines(
        line('session_meta', { id: 's', parent_thread_id: 'p', source: { subagent: { other: 'review' } } }),
        said('user', '<environment_context>/w</environment_context>'),
        said('user', 'One'),
        said('assistant', 'First'),
        said('user', 'Two'),
        said('assistant', 'Second'),
        line('event_msg', { type: 'thread_rolled_back', num_turns: 1 }),
        line('event_msg', { type: 'thread_name_updated', thread_name: 'Numbers' }),
        said('user', 'Three'),
      ),
    )
    const texts = leftIn(records).map((blob) => (blob as { content: { text: string }[] }).content[0]!.text)
    expect(texts).toEqual(['<environment_context>/w</environment_context>', 'One', 'First', 'Three'])
    expect(outline(records)).toContainEqual(expect.stringMatching(/^s\d \{"title":"Numbers"\}$/))
    expect(outline(records)).toContain('s2 below s1 {"agent":"codex","subagent":"review"}')
  })

  it('writes what a run says to its output: items, whose names begin anew with each run', async () => {
    const run = [
      { type: 'turn.started' },
      { type: 'item.started', item: { id: 'item_0', type: 'command_execution', command: 'ls' } },
      {
        type: 'item.completed',
        item: {
          id: 'item_0',
          type: 'command_execution',
          command: 'ls',
          aggregated_output: 'no',
          exit_code: 2,
        },
      },
      { type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: 'Done.' } },
      { type: 'turn.completed', usage: { input_tokens: 1 } },
    ]
    const records = await recordsOf(
      'run.jsonl',
      lines({ type: 'thread.started', thread_id: 's' }, ...run, ...run),
    )
    expect(blobsIn(records).slice(0, 3)).toEqual([
      { type: 'function_call', call_id: '1/item_0', name: 'shell', arguments: '{"command":"ls"}' },
      {
        type: 'function_call_output',
        call_id: '1/item_0',
        output: '{"output":"no","metadata":{"exit_code":2}}',
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] },
    ])
    expect(blobsIn(records)).toHaveLength(6)
    expect(records.some((record) => record.kind === 'entry' && record.repeats)).toBe(false)
  })
})

describe('Gemini', () => {
  it('CLI writes a message whole when it changes, and marks what was rewound', async () => {
    const call = { id: 'c1', name: 'f', args: {} }
    const at = (second: number) => `2026-10-01T10:00:0${second}.000Z`
    const records = await recordsOf(
      'session.jsonl',
      lines(
        { sessionId: 's', projectHash: 'h', startTime: at(0), lastUpdated: at(0), directories: ['/w'] },
        { id: 'a', timestamp: at(1), type: 'user', content: [{ text: 'One' }] },
        {
          id: 'b',
          timestamp: at(2),
          type: 'gemini',
          model: 'm',
          content: '',
          toolCalls: [{ ...call, status: 'executing' }],
        },
        {
          id: 'b',
          timestamp: at(2),
          type: 'gemini',
          model: 'm',
          content: 'Done.',
          toolCalls: [{ ...call, status: 'cancelled', timestamp: at(3) }],
        },
        { id: 'c', timestamp: at(4), type: 'user', content: 'Two' },
        { $rewindTo: 'c' },
        { $set: { summary: 'Numbers' } },
        { id: 'd', timestamp: at(5), type: 'user', content: 'Three' },
      ),
    )
    expect(leftIn(records)).toEqual([
      { role: 'user', parts: [{ text: 'One' }] },
      { role: 'model', parts: [{ text: 'Done.' }] },
      { role: 'model', parts: [{ functionCall: call }] },
      {
        role: 'user',
        parts: [{ functionResponse: { id: 'c1', name: 'f', response: { error: 'cancelled' } } }],
      },
      { role: 'user', parts: [{ text: 'Three' }] },
    ])
    expect(tallyOf(records)).toEqual({ read: 8, mapped: 8, kept_raw: 0, refused: 0 })
    expect(outline(records)).toContainEqual(expect.stringMatching(/^s\d \{"title":"Numbers"\}$/))
  })

  it.each([
    ['a checkpoint', { history: [{ role: 'user', parts: [{ text: 'One' }] }], authType: 'x' }],
    [
      'a line of the answers of a batch',
      { key: 'k', response: { candidates: [{ content: { role: 'user', parts: [{ text: 'One' }] } }] } },
    ],
  ])('reads %s', async (_, value) => {
    const records = await recordsOf('x.jsonl', lines(value))
    expect(formatOf(records)).toBe('gemini')
    expect(blobsIn(records)).toEqual([{ role: 'user', parts: [{ text: 'One' }] }])
  })
})

describe('batches', () => {
  const asked = (custom_id: string, content: string, url = '/v1/chat/completions') => ({
    custom_id,
    method: 'POST',
    url,
    body: {
      model: 'm',
      ...(url.endsWith('responses') ? { input: content } : { messages: [{ role: 'user', content }] }),
    },
  })

  it('that have the same names are not the same', async () => {
    const ids = await Promise.all(
      ['One', 'Two'].map(async (text) =>
        entriesIn(await recordsOf('b.jsonl', lines(asked('request-1', text)))),
      ),
    )
    expect(new Set(ids.flat().map(({ id }) => id)).size).toBe(ids.flat().length)
  })

  it.each([
    ['of chats', asked('a', 'One'), 'openai-chat', { role: 'user', content: 'One' }],
    [
      'of responses',
      asked('a', 'One', '/v1/responses'),
      'openai-responses',
      { role: 'user', content: 'One' },
    ],
    [
      'of Anthropic',
      { custom_id: 'a', params: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'One' }] } },
      'anthropic',
      { role: 'user', content: 'One' },
    ],
  ])('%s are read before they are sent', async (_, line, format, blob) => {
    const records = await recordsOf('b.jsonl', lines(line))
    expect([formatOf(records), blobsIn(records)]).toEqual([format, [blob]])
  })

  it('have requests that failed', async () => {
    const error = { message: 'bad', type: 'invalid_request_error' }
    const failed = { custom_id: 'a', response: { status_code: 400, body: { error } }, error: null }
    const records = await recordsOf('b.jsonl', lines(failed, { custom_id: 'b', response: null, error }))
    expect(tallyOf(records)).toMatchObject({ read: 2, refused: 0 })
    expect(json(entriesIn(records)).match(/invalid_request_error/g)).toHaveLength(2)
  })
})

describe('traces', () => {
  const start = '2026-10-01T10:00:00'
  const end = '2026-10-01T10:00:02'
  const data = async (text: string) =>
    entriesIn(await recordsOf('spans.jsonl', text)).flatMap((entry) =>
      entry.kind === 'event' ? [entry.data] : [],
    )

  it("have a tool's span as the call of the message that it answers, with its duration and failure", async () => {
    const run = {
      id: 'r',
      trace_id: 't',
      name: 'weather',
      run_type: 'tool',
      start_time: start,
      end_time: end,
    }
    const outputs = { output: { type: 'tool', content: 'no city', tool_call_id: 'c1' } }
    expect(
      await data(lines({ ...run, inputs: { input: '{"city":1}' }, outputs, error: 'Boom' })),
    ).toMatchObject([
      {
        operation: 'tool',
        duration_ms: 2_000,
        error: 'Boom',
        tool: { name: 'weather', id: 'c1', arguments: { city: 1 }, result: outputs.output, is_error: true },
      },
    ])
  })

  it('count tokens under the same names, whatever a tracer calls them', async () => {
    const usages = [
      { input: 3, output: 2, total: 5, input_cached_tokens: 1 },
      { promptTokens: 3, completionTokens: 2, totalTokens: 5, cached_tokens: 1 },
    ]
    for (const usageDetails of usages) {
      const span = {
        id: 'o',
        traceId: 't',
        type: 'GENERATION',
        name: 'g',
        startTime: start,
        endTime: end,
        model: 'm',
      }
      const [told] = await data(lines({ ...span, input: 'Hi', output: 'Hello', usageDetails }))
      expect(told).toMatchObject({
        operation: 'model',
        usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5, cached_tokens: 1 },
      })
    }
  })

  it('of the console exporter and of Logfire say what a model was asked and answered', async () => {
    const attributes = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'm',
      'gen_ai.input.messages': json([{ role: 'user', parts: [{ type: 'text', content: 'Hi' }] }]),
      'gen_ai.output.messages': json([{ role: 'assistant', parts: [{ type: 'text', content: 'Hello' }] }]),
    }
    const spans = [
      {
        name: 'chat m',
        context: { trace_id: '0xa', span_id: '0xb' },
        start_time: start,
        end_time: end,
        attributes,
      },
      {
        span_name: 'chat m',
        trace_id: 'a',
        span_id: 'b',
        start_timestamp: start,
        end_timestamp: end,
        attributes,
      },
    ]
    for (const span of spans)
      expect(blobsIn(await recordsOf('spans.jsonl', lines(span)))).toEqual([
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
      ])
  })

  it("have records of logs in the session of their trace's spans, with their messages and tools", async () => {
    const traceId = '5b8efff798038103d269b633813fc60c'
    const spanId = 'eee19b7ec3c1b174'
    const text = (stringValue: string) => ({ stringValue })
    const span = {
      traceId,
      spanId,
      name: 'chat',
      startTimeUnixNano: '1764149400000000000',
      endTimeUnixNano: '1764149401000000000',
      attributes: [{ key: 'session.id', value: text('s') }],
    }
    const said = (eventName: string, content: object) => ({
      traceId,
      spanId,
      timeUnixNano: '1764149400000000000',
      eventName,
      body: { kvlistValue: { values: [{ key: 'content', value: content }] } },
    })
    const failed = {
      traceId,
      timeUnixNano: '1764149400500000000',
      attributes: Object.entries({ 'event.name': 'tool_result', tool_name: 'Bash', success: 'false' }).map(
        ([key, value]) => ({ key, value: text(value) }),
      ),
    }
    const records = await recordsOf(
      'otlp.jsonl',
      lines(
        { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] },
        {
          resourceLogs: [{ scopeLogs: [{ logRecords: [said('gen_ai.user.message', text('Hi')), failed] }] }],
        },
      ),
    )
    expect(records.filter(({ kind }) => kind === 'session')).toHaveLength(1)
    expect(blobsIn(records)).toEqual([{ role: 'user', content: 'Hi' }])
    expect(entriesIn(records).at(-1)).toMatchObject({
      type: 'otel.log',
      data: { tool: { name: 'Bash', is_error: true }, raw: { record: failed } },
    })
  })
})

it('a conversation that each request of the Responses API repeats is stored once', async () => {
  const said = (id: string, text: string) => ({
    type: 'message',
    id,
    role: 'assistant',
    content: [{ type: 'output_text', text }],
  })
  const asked = (content: string) => ({ role: 'user', content })
  const response = (id: string, output: object) => ({
    id,
    object: 'response',
    conversation: 'c',
    output: [output],
  })
  const records = await recordsOf(
    'log.jsonl',
    lines(
      { request: { input: [asked('One')] }, response: response('r1', said('m1', 'First')) },
      {
        request: { input: [asked('One'), said('m1', 'First'), asked('Two')] },
        response: response('r2', said('m2', 'Second')),
      },
    ),
  )
  expect(blobsIn(records)).toEqual([asked('One'), said('m1', 'First'), asked('Two'), said('m2', 'Second')])
})
