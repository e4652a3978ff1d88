import { describe, expect, it } from 'vitest'
import { isShownElsewhere, type LogEntry, SessionReader, textSaysFailed } from '../src/session/index.js'
import { asVector, callsOf, logOf, RESULT_TEXTS, SESSION_VECTORS } from './session_vectors.js'

function read(log: LogEntry[]) {
  const reader = new SessionReader()
  return log.map((entry) => reader.read(entry))
}

describe('a session', () => {
  it.each(SESSION_VECTORS)('$name', (vector) => {
    const entries = read(logOf(vector))
    expect(callsOf(entries).map(asVector)).toEqual(vector.calls)
    expect(entries.filter(isShownElsewhere).map(({ seq }) => seq)).toEqual(vector.shown_elsewhere)
  })

  it('tells by the version of a call that a later entry has changed it', () => {
    const [{ entries }] = SESSION_VECTORS as [(typeof SESSION_VECTORS)[number]]
    const log = logOf({ entries })
    const reader = new SessionReader()
    const [call] = callsOf(log.slice(0, 2).map((entry) => reader.read(entry)))
    const before = call!.version
    reader.read(log[2]!)
    expect(call!.version).toBe(before)
    reader.read(log[3]!)
    expect(call).toMatchObject({ version: before + 1, verdict: 'failed', result: { duration_ms: 2_000 } })
  })

  it('takes the time that entries happened at, where they say it, for clocks and durations', () => {
    const call = { kind: 'event', type: 'tool_call', data: { id: 'c1', name: 'find', arguments: {} } }
    const result = { kind: 'event', type: 'tool_result', data: { id: 'c1', result: 'found' } }
    const times = ['2024-03-01T01:00:00.000000Z', '2024-03-01T01:00:07.500000Z']
    const log = logOf({ entries: [call, result] }).map((entry, at) => ({ ...entry, occurred_at: times[at] }))
    const entries = read(log)
    expect(entries.map(({ created_at }) => created_at)).toEqual(times)
    expect(callsOf(entries)[0]!.result!.duration_ms).toBe(7_500)
  })
})

describe('a span of OpenTelemetry', () => {
  const span = (data: object) =>
    read(logOf({ entries: [{ kind: 'event', type: 'otel.span', data }] }))[0]!.blocks

  it('is a line with its model, tokens and time; of a tool, a call that has its result and its own duration', () => {
    const usage = { input_tokens: 30, output_tokens: 5 }
    const status = { code: 'error' }
    expect(
      span({ name: 'chat', operation: 'model', model: 'm', usage, duration_ms: 1_204.4, status }),
    ).toEqual([
      expect.objectContaining({
        ...{ kind: 'state', title: 'model', is_failed: true },
        summary: 'chat · m · 30 tokens in · 5 out · 1,204 ms · failed',
      }),
    ])
    const tool = { id: 'c1', name: 'find', arguments: '{}', result: 'found' }
    const [call] = span({ name: 'execute_tool find', operation: 'tool', tool, duration_ms: 12.5 })
    expect(call).toMatchObject({
      ...{ kind: 'call', call: { id: 'c1', verdict: 'ok', result: { text: 'found', duration_ms: 12.5 } } },
    })
  })
})

describe('a part of a session', () => {
  it('has no call numbers from where entries were left out', () => {
    const call = (name: string) => ({ kind: 'event', type: 'tool_call', data: { name, arguments: {} } })
    const log = logOf({ entries: ['one', 'two', 'three', 'four'].map(call) })
    const numbersOf = (entries: LogEntry[]) => callsOf(read(entries)).map(({ number }) => number)
    expect(numbersOf(log)).toEqual([1, 2, 3, 4])
    expect(numbersOf(log.slice(1))).toEqual([undefined, undefined, undefined])
    expect(numbersOf([log[0]!, log[1]!, log[3]!])).toEqual([1, 2, undefined])
  })

  it('of Codex has the failures of tools of MCP, which only an event reports', () => {
    const output = 'Wall time: 1.2500 seconds\nOutput:\n[{"type":"text","text":"no such ticket"}]'
    const responses = (blob: object) => ({ kind: 'message', format: 'responses', blob })
    const end = (call_id: string, result: object) => ({
      kind: 'event',
      type: 'mcp_tool_call_end',
      data: { call_id, invocation: { server: 'tickets', tool: 'open', arguments: {} }, result },
    })
    const verdictOf = (result: object) => {
      const made = { type: 'function_call', call_id: 'c1', name: 'tickets__open', arguments: '{}' }
      const answer = { type: 'function_call_output', call_id: 'c1', output }
      const log = logOf({ entries: [responses(made), end('c1', result), responses(answer)] })
      return callsOf(read(log)).map(({ verdict, result }) => [verdict, result?.text])
    }
    const content = [{ type: 'text', text: 'no such ticket' }]
    expect(verdictOf({ Ok: { content, isError: true } })).toEqual([['failed', output]])
    expect(verdictOf({ Err: 'tool call error: closed' })).toEqual([['failed', output]])
    expect(verdictOf({ Ok: { content, isError: false } })).toEqual([['ok', output]])
  })
})

describe('what adapters store', () => {
  const vectorOf = (name: RegExp) => SESSION_VECTORS.find((vector) => name.test(vector.name))!

  it('is the text of a stream where it began, thoughts apart, in linear time whatever its pieces', () => {
    const entries = read(logOf(vectorOf(/^a stream/)))
    expect(entries.map(({ speaker, blocks }) => [speaker, blocks[0]])).toMatchObject([
      ['assistant', { whole: { text: 'Looking', seq: 1, is_thinking: false }, text: '' }],
      ['assistant', { is_repeat: true, text: 'Loo' }],
      ['assistant', { is_repeat: true, text: 'king' }],
      ['assistant', { is_repeat: true, text: '' }],
      ['assistant', { whole: { text: '21 degrees', seq: 5 }, is_repeat: false }],
      ['assistant', { is_repeat: true, text: '21 degrees' }],
      ['ai_sdk.stream_end', { kind: 'state', title: 'stream ended', summary: 'done', is_failed: false }],
    ])
    const chunk = (text: string) => ({ kind: 'event', type: 'ai_sdk.chunks', data: { text } })
    const delta = (type: string) => `data: {"type":"${type}","delta":"Hm."}\n\n`
    const thoughts = read(logOf({ entries: [chunk(delta('reasoning-delta') + delta('text-delta'))] }))[0]!
    expect(thoughts.blocks).toMatchObject([
      { whole: { is_thinking: true, text: 'Hm.' } },
      { whole: { is_thinking: false, text: 'Hm.' }, is_repeat: false },
    ])
    // A part that never ends, one character an entry, and then one that does.
    const endless = Array.from({ length: 20_000 }, () => chunk('x'.repeat(100)))
    const log = read(logOf({ entries: [...endless, chunk(`\n\n${delta('text-delta')}`)] }))
    expect(log[0]!.blocks).toMatchObject([{ whole: { text: 'Hm.' } }])
  })

  it('is what was said in a graph, and the state beside it in a line each', () => {
    const entries = read(logOf(vectorOf(/LangGraph/)))
    const said = entries.map(({ speaker, blocks: [block] }) => [
      speaker,
      block!.kind === 'state' ? `${block!.title}: ${block!.summary}` : block!.kind,
    ])
    expect(said).toEqual([
      ['user', 'text'],
      ['langgraph.checkpoint', 'checkpoint: step -1 · input'],
      ['assistant', 'text'],
      ['langgraph.channel', 'channel messages: 1 item'],
      ['tool', 'result'],
      ['langgraph.write', 'write messages: msgpack, 4 characters'],
      ['langgraph.write', 'write branch:to:answer: true'],
    ])
    expect(read(logOf(vectorOf(/Pydantic/))).map(({ speaker }) => speaker)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ])
  })
})

describe('what an entry says', () => {
  const blocksOf = (format: string, blob: object) =>
    read(logOf({ entries: [{ kind: 'message', format, blob }] }))[0]!

  it('has the speaker in one word, whatever the provider calls it, and the name beside it', () => {
    const speaker = (format: string, blob: object) => blocksOf(format, blob).speaker
    expect([
      speaker('openai', { role: 'system', content: 'Be brief.' }),
      speaker('openai', { role: 'developer', content: 'Be brief.' }),
      speaker('openai', { role: 'tool', tool_call_id: 'a', content: 'x' }),
      speaker('gemini', { role: 'model', parts: [{ text: 'Hi' }] }),
      speaker('anthropic', {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }],
      }),
      speaker('anthropic', { role: 'user', content: 'Hi' }),
    ]).toEqual(['system', 'developer', 'tool', 'assistant', 'tool', 'user'])
    expect(blocksOf('openai', { role: 'user', name: 'bob', content: 'Hi' })).toMatchObject({
      speaker: 'user',
      name: 'bob',
    })
  })

  it('holds what is no message of its format as it is, and what models think aloud', () => {
    expect(blocksOf('openai', { role: 'nobody' }).blocks).toEqual([
      { kind: 'data', value: { role: 'nobody' } },
    ])
    expect(
      blocksOf('openai', { role: 'assistant', content: 'Yes', reasoning_content: 'Hm.' }).blocks,
    ).toEqual([
      { kind: 'thinking', text: 'Hm.' },
      { kind: 'text', text: 'Yes' },
    ])
    expect(
      blocksOf('anthropic', { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'x' }] })
        .blocks,
    ).toEqual([{ kind: 'thinking', text: null }])
    const reasoning = { type: 'reasoning', id: 'rs_1', encrypted_content: 'gAAAAB' }
    expect(blocksOf('responses', { ...reasoning, summary: [] }).blocks).toEqual([
      { kind: 'thinking', text: null },
    ])
    expect(
      blocksOf('responses', { ...reasoning, summary: [{ type: 'summary_text', text: 'Hm.' }] }).blocks,
    ).toEqual([{ kind: 'thinking', text: 'Hm.' }])
  })

  it('has the pictures that a tool of OpenAI gave, beside the call or the result', () => {
    const made = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'aGk=' }
    expect(blocksOf('responses', made).blocks).toMatchObject([
      { kind: 'call', call: { name: 'image_generation', verdict: 'ok' } },
      { kind: 'result', result: { text: '' } },
      { kind: 'medium', part: { type: 'image', meta: { media_type: 'image/png', data: 'aGk=' } } },
    ])
    const output = { type: 'computer_screenshot', image_url: 'data:image/png;base64,aGk=' }
    const shown = blocksOf('responses', { type: 'computer_call_output', call_id: 'c', output })
    expect(shown.speaker).toBe('tool')
    expect(shown.blocks).toMatchObject([
      { kind: 'result', name: 'computer', result: { text: '', is_failed: false } },
      { kind: 'medium', part: { type: 'image', meta: { data: 'aGk=', tool_call_id: 'c' } } },
    ])
  })
})

describe('a result', () => {
  it.each(RESULT_TEXTS.failed)('says that the call failed: %j', (text) => {
    expect(textSaysFailed(text)).toBe(true)
  })

  it.each(RESULT_TEXTS.fine)('says no such thing: %j', (text) => {
    expect(textSaysFailed(text)).toBe(false)
  })
})

describe('a compaction', () => {
  const read = (data: Record<string, unknown>) =>
    new SessionReader().read({ kind: 'event', seq: 9, created_at: '', type: 'annals.compaction', data })

  it('is a line that says what it covers, and its summary, whose calls are none of the session', () => {
    const call = { id: 'x', type: 'function', function: { name: 'look', arguments: '{}' } }
    const summary = [
      { format: 'openai', blob: { role: 'assistant', content: 'Said before.', tool_calls: [call] } },
      { format: 'gemini', blob: { role: 'user', parts: [{ text: 'And more.' }] } },
    ]
    const { speaker, blocks } = read({ from_seq: 1, to_seq: 8, entries: 7, by: 'me', summary })
    expect(speaker).toBe('annals.compaction')
    expect(blocks).toMatchObject([
      { kind: 'state', title: 'summary', summary: 'seq 1 to 8 · 7 entries · me' },
      { kind: 'text', text: 'Said before.' },
      { kind: 'text', text: 'And more.' },
    ])
  })

  it('is shown whatever an event of its type has', () => {
    for (const data of [
      {},
      { summary: 1 },
      {
        summary: [
          { format: 'none', blob: {} },
          { format: 'openai', blob: 1 },
        ],
      },
    ])
      expect(read(data).blocks).toHaveLength(1)
  })
})

describe('what an adapter escaped', () => {
  it('is shown as U+FFFD, in messages and in events', () => {
    const place = { seq: 1, created_at: '' }
    const blob = { role: 'user', content: 'W\ufdd00s, \ufdd0d800, \ufdd0\ufdd0' }
    const message = {
      ...place,
      kind: 'message',
      id: 'm',
      parent_id: null,
      role: 'user',
      format: 'openai',
    } as const
    const [said, called] = read([
      { ...message, blob },
      { ...place, kind: 'event', type: 'tool_call', data: { name: 'f\ufdd00', arguments: {} } },
    ])
    expect(said!.blocks).toEqual([{ kind: 'text', text: 'W\ufffds, \ufffd, \ufdd0' }])
    expect(called!.blocks).toMatchObject([{ kind: 'call', call: { name: 'f\ufffd' } }])
  })
})
