import { describe, expect, it } from 'vitest'
import { blobsIn, entriesIn, formatOf, lines, outline, recordsOf, tallyOf } from './reading.ts'

const json = JSON.stringify

describe('conversations of other programs', () => {
  const ASKED = { role: 'user', content: 'Weather?' }
  const CALLED = (id: string) => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
  })
  const RESULT = (id: string) => ({ role: 'tool', tool_call_id: id, content: '4 degrees' })
  const FAILED = (id: string) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: id, content: 'no city', is_error: true }],
  })
  const SAID = { role: 'assistant', content: 'Cold.' }
  const time = (second: number) => `2026-10-01T10:00:0${second}.000Z`
  const ms = (second: number) => Date.parse(time(second))
  const opencode = (messageID: string, part: { type: string; [name: string]: unknown }) => ({
    type: part.type.replace('-', '_'),
    timestamp: ms(1),
    sessionID: 'ses_1',
    part: { ...part, messageID },
  })

  it.each<[string, string, unknown[]]>([
    [
      'ShareGPT',
      lines({
        conversations: [
          { from: 'human', value: 'Weather?' },
          { from: 'function_call', value: '{"name":"weather","arguments":{"city":"Oslo"}}' },
          { from: 'observation', value: '4 degrees' },
          { from: 'gpt', value: 'Cold.' },
        ],
      }),
      [ASKED, CALLED('call_1_0_0'), RESULT('call_1_0_0'), SAID],
    ],
    ['a prompt and its completion', lines({ prompt: 'Weather?', completion: 'Cold.' }), [ASKED, SAID]],
    [
      'an instruction and its output',
      json([{ instruction: 'Weather?', input: '', output: 'Cold.' }]),
      [ASKED, SAID],
    ],
    [
      'preferences of conversations',
      lines({ prompt: [ASKED], chosen: [SAID], rejected: [{ role: 'assistant', content: 'Hot.' }] }),
      [ASKED, SAID],
    ],
    [
      "the AI SDK's pages",
      json({
        id: 'chat',
        messages: [
          { id: 'a', role: 'user', parts: [{ type: 'text', text: 'Weather?' }] },
          {
            id: 'b',
            role: 'assistant',
            parts: [
              { type: 'step-start' },
              {
                type: 'tool-weather',
                toolCallId: 'c1',
                state: 'output-available',
                input: { city: 'Oslo' },
                output: '4 degrees',
              },
              { type: 'step-start' },
              { type: 'text', text: 'Cold.' },
            ],
          },
        ],
      }),
      [ASKED, CALLED('c1'), RESULT('c1'), SAID],
    ],
    [
      'LangChain, as it stores messages',
      json([
        { type: 'human', data: { content: 'Weather?' } },
        {
          type: 'ai',
          data: { content: '', tool_calls: [{ id: 'c1', name: 'weather', args: { city: 'Oslo' } }] },
        },
        { type: 'tool', data: { content: '4 degrees', tool_call_id: 'c1' } },
        { type: 'ai', data: { content: 'Cold.' } },
      ]),
      [ASKED, CALLED('c1'), RESULT('c1'), SAID],
    ],
    [
      'Pydantic AI',
      json([
        { kind: 'request', parts: [{ part_kind: 'user-prompt', content: 'Weather?' }] },
        {
          kind: 'response',
          parts: [
            { part_kind: 'tool-call', tool_name: 'weather', args: { city: 'Oslo' }, tool_call_id: 'c1' },
          ],
        },
        {
          kind: 'request',
          parts: [
            { part_kind: 'retry-prompt', tool_name: 'weather', content: 'no city', tool_call_id: 'c1' },
          ],
        },
        { kind: 'response', parts: [{ part_kind: 'text', content: 'Cold.' }] },
      ]),
      [ASKED, CALLED('c1'), FAILED('c1'), SAID],
    ],
    [
      'Bedrock',
      json({
        system: [{ text: 'Be brief.' }],
        messages: [
          { role: 'user', content: [{ text: 'Weather?' }] },
          {
            role: 'assistant',
            content: [{ toolUse: { toolUseId: 'c1', name: 'weather', input: { city: 'Oslo' } } }],
          },
          {
            role: 'user',
            content: [{ toolResult: { toolUseId: 'c1', status: 'error', content: [{ text: 'no city' }] } }],
          },
          { role: 'assistant', content: [{ text: 'Cold.' }] },
        ],
      }),
      [{ role: 'system', content: 'Be brief.' }, ASKED, CALLED('c1'), FAILED('c1'), SAID],
    ],
    [
      'OpenCode',
      json({
        info: { id: 'ses', title: 'Weather' },
        messages: [
          { info: { role: 'user', time: { created: ms(1) } }, parts: [{ type: 'text', text: 'Weather?' }] },
          {
            info: { role: 'assistant', modelID: 'm', time: { created: ms(2), completed: ms(3) } },
            parts: [
              {
                type: 'tool',
                tool: 'weather',
                callID: 'c1',
                state: {
                  status: 'completed',
                  input: { city: 'Oslo' },
                  output: 'no city',
                  metadata: { exit: 1 },
                },
              },
              { type: 'step-finish', reason: 'tool-calls' },
              { type: 'patch', hash: '1', files: [] },
              { type: 'text', text: 'Cold.' },
            ],
          },
        ],
      }),
      [ASKED, CALLED('c1'), FAILED('c1'), SAID],
    ],
    [
      'the output of OpenCode',
      lines(
        opencode('m1', { type: 'step-start' }),
        opencode('m1', {
          type: 'tool',
          tool: 'weather',
          callID: 'c1',
          state: { status: 'error', input: { city: 'Oslo' }, error: 'no city' },
        }),
        opencode('m1', { type: 'step-finish', reason: 'tool-calls' }),
        opencode('m2', { type: 'text', text: 'Cold.' }),
      ),
      [CALLED('c1'), FAILED('c1'), SAID],
    ],
    [
      'OpenHands',
      json([
        { id: 0, source: 'user', action: 'message', args: { content: 'Weather?' }, timestamp: time(1) },
        { id: 1, source: 'agent', action: 'weather', args: { city: 'Oslo' }, timestamp: time(2) },
        { id: 2, source: 'agent', cause: 1, observation: 'error', content: 'no city', timestamp: time(3) },
        { id: 3, source: 'agent', action: 'finish', args: { final_thought: 'Cold.' }, timestamp: time(4) },
      ]),
      [ASKED, CALLED('call_1'), FAILED('call_1'), SAID],
    ],
    [
      'OpenHands since version 1',
      lines(
        {
          kind: 'MessageEvent',
          source: 'user',
          llm_message: { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
        },
        {
          kind: 'ActionEvent',
          source: 'agent',
          thought: [],
          tool_name: 'weather',
          tool_call_id: 'c1',
          tool_call: { id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' },
        },
        {
          kind: 'ObservationEvent',
          source: 'environment',
          tool_call_id: 'c1',
          observation: { content: [{ type: 'text', text: '4 degrees' }], is_error: false },
        },
        {
          kind: 'MessageEvent',
          source: 'agent',
          llm_message: { role: 'assistant', content: [{ type: 'text', text: 'Cold.' }] },
        },
      ),
      [ASKED, CALLED('c1'), RESULT('c1'), SAID],
    ],
    [
      "Copilot's command line",
      lines(
        { type: 'session.start', data: { context: { cwd: '/w' } }, timestamp: time(0) },
        { type: 'user.message', data: { content: 'Weather?' }, timestamp: time(1) },
        {
          type: 'assistant.message',
          data: {
            content: '',
            toolRequests: [{ toolCallId: 'c1', name: 'weather', arguments: { city: 'Oslo' } }],
          },
          timestamp: time(2),
        },
        {
          type: 'tool.execution_complete',
          data: { toolCallId: 'c1', success: false, error: { message: 'no city' } },
          timestamp: time(3),
        },
        { type: 'assistant.message', data: { content: 'Cold.', toolRequests: [] }, timestamp: time(4) },
      ),
      [ASKED, CALLED('c1'), FAILED('c1'), SAID],
    ],
    [
      'Pi and Droid',
      lines(
        { type: 'session', id: 's', cwd: '/w', timestamp: time(0) },
        {
          type: 'message',
          timestamp: time(1),
          message: { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
        },
        {
          type: 'message',
          timestamp: time(2),
          message: {
            role: 'assistant',
            content: [{ type: 'toolCall', id: 'c1', name: 'weather', arguments: { city: 'Oslo' } }],
          },
        },
        {
          type: 'message',
          timestamp: time(3),
          message: {
            role: 'toolResult',
            toolCallId: 'c1',
            content: [{ type: 'text', text: 'no city' }],
            isError: true,
          },
        },
        {
          type: 'message',
          timestamp: time(4),
          message: { role: 'assistant', content: [{ type: 'text', text: 'Cold.' }] },
        },
      ),
      [ASKED, CALLED('c1'), FAILED('c1'), SAID],
    ],
    [
      'Open WebUI',
      json([
        {
          id: 'c',
          title: 'Weather',
          chat: {
            models: ['m'],
            messages: [
              { id: 'a', role: 'user', content: 'Weather?', timestamp: ms(1) / 1e3 },
              { id: 'b', role: 'assistant', content: 'Cold.', timestamp: ms(2) / 1e3 },
            ],
          },
        },
      ]),
      [ASKED, SAID],
    ],
    [
      'LibreChat',
      json({
        conversationId: 'c',
        title: 'Weather',
        messages: [
          { text: 'Weather?', isCreatedByUser: true, sender: 'User', createdAt: time(1) },
          { text: 'Cold.', isCreatedByUser: false, sender: 'GPT', createdAt: time(2) },
        ],
      }),
      [ASKED, SAID],
    ],
    [
      'LM Studio',
      json({
        name: 'Weather',
        messages: [
          {
            currentlySelected: 1,
            versions: [
              { role: 'user', content: [] },
              { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
            ],
          },
          {
            currentlySelected: 0,
            versions: [{ role: 'assistant', steps: [{ content: [{ type: 'text', text: 'Cold.' }] }] }],
          },
        ],
      }),
      [ASKED, SAID],
    ],
  ])('%s: messages, calls and results stand once and in order', async (_, text, expected) => {
    const records = await recordsOf('chat', text)
    expect(formatOf(records)).toBe('conversations')
    expect(blobsIn(records)).toEqual(expected)
    expect(records.filter(({ kind }) => kind === 'session')).toHaveLength(1)
    expect(tallyOf(records)?.refused).toBe(0)
    // Where the source has times, each message has one.
    const times = entriesIn(records)
      .filter(({ kind }) => kind === 'message')
      .map(({ occurred_at }) => occurred_at)
    if (/"(?:timestamp|createdAt|created)":/.test(text)) expect(times).not.toContain(undefined)
    // The same again: nothing is new.
    const again = await recordsOf('chat', text)
    expect(entriesIn(again).map(({ id }) => id)).toEqual(entriesIn(records).map(({ id }) => id))
    expect(new Set(entriesIn(records).map(({ id }) => id)).size).toBe(entriesIn(records).length)
  })

  it('leaves lists of what a user typed, which agents keep beside their sessions, out of a folder', async () => {
    const typed = [
      { sessionId: 's', messageId: 0, type: 'user', message: 'Weather?', timestamp: time(1) },
      { session_id: 's', ts: ms(1) / 1e3, text: 'Weather?' },
      { display: 'Weather?', pastedContents: {}, timestamp: ms(1), project: '/w' },
    ]
    for (const one of typed)
      await expect(recordsOf('logs.json', json([one]))).rejects.toThrow(
        'Annals does not recognize the format of logs.json',
      )
  })

  it('Goose and Kimi, whose lines look like those of OpenAI, have their calls and thoughts', async () => {
    const goose = lines(
      { working_dir: '/w', description: 'Weather' },
      { role: 'user', created: ms(1) / 1e3, content: [{ type: 'text', text: 'Weather?' }] },
      {
        role: 'assistant',
        created: ms(2) / 1e3,
        content: [
          {
            type: 'toolRequest',
            id: 'c1',
            toolCall: { status: 'success', value: { name: 'weather', arguments: { city: 'Oslo' } } },
          },
        ],
      },
      {
        role: 'user',
        created: ms(3) / 1e3,
        content: [
          {
            type: 'toolResponse',
            id: 'c1',
            toolResult: { status: 'success', value: [{ type: 'text', text: '4 degrees' }] },
          },
        ],
      },
    )
    const [, ...said] = blobsIn(await recordsOf('goose.jsonl', goose))
    expect(said).toEqual([CALLED('c1'), RESULT('c1')])
    const kimi = lines(
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: [
          { type: 'think', think: 'Oslo' },
          { type: 'text', text: 'Cold.' },
        ],
      },
    )
    expect(blobsIn(await recordsOf('context.jsonl', kimi))).toEqual([
      ASKED,
      { role: 'assistant', content: 'Cold.', reasoning_content: 'Oslo' },
    ])
  })

  it('Droid and Grok Build, which write calls and results as lines of their own, have both', async () => {
    const of = { session_id: 'd' }
    const droid = lines(
      { type: 'system', subtype: 'init', cwd: '/w', model: 'm', ...of },
      { type: 'message', role: 'user', id: 'u', text: 'Weather?', timestamp: ms(1), ...of },
      { type: 'reasoning', id: 'r', text: 'Oslo', timestamp: ms(2), ...of },
      { type: 'tool_call', id: 'c1', toolName: 'weather', parameters: { city: 'Oslo' }, ...of },
      { type: 'tool_result', id: 'c1', toolId: 'weather', isError: false, value: '4 degrees', ...of },
      { type: 'message', role: 'assistant', id: 'a', text: 'Cold.', timestamp: ms(5), ...of },
      {
        type: 'completion',
        finalText: 'Cold.',
        usage: { input_tokens: 9, output_tokens: 2, cache_read_input_tokens: 1 },
        timestamp: ms(5),
        ...of,
      },
    )
    const THOUGHT = { role: 'assistant', content: '', reasoning_content: 'Oslo' }
    const COLD = { role: 'assistant', content: 'Cold.' }
    const records = await recordsOf('droid.jsonl', droid)
    expect(blobsIn(records)).toEqual([ASKED, THOUGHT, CALLED('c1'), RESULT('c1'), COLD])
    expect(JSON.stringify(records)).toContain('"model":"m","usage":{"input_tokens":9,"output_tokens":2')

    const grok = lines(
      { type: 'user', content: [{ type: 'text', text: 'Weather?' }] },
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Oslo' }], status: 'completed' },
      {
        type: 'assistant',
        content: '',
        tool_calls: [{ id: 'c1', name: 'weather', arguments: '{"city":"Oslo"}' }],
        model_id: 'm',
      },
      { type: 'tool_result', tool_call_id: 'c1', content: '4 degrees' },
      { type: 'assistant', content: 'Cold.', model_id: 'm' },
    )
    const [asked, ...others] = blobsIn(await recordsOf('chat_history.jsonl', grok))
    expect(asked).toEqual(ASKED)
    expect(others).toEqual([THOUGHT, CALLED('c1'), RESULT('c1'), COLD])
  })

  it('are sessions of their own where only their folders tell them apart', async () => {
    const begun = { type: 'system', content: 'You are Grok.' }
    const idsOf = async (name: string, said: string) => {
      const log = lines(begun, { type: 'user', content: [{ type: 'text', text: said }] })
      const records = await recordsOf(name, log)
      return records.flatMap((record) => (record.kind === 'session' ? [record.id] : []))
    }
    const [one] = await idsOf('.grok/sessions/w/7c0c/chat_history.jsonl', 'Weather?')
    const [other] = await idsOf('.grok/sessions/w/8d1d/chat_history.jsonl', 'Time?')
    expect(one).not.toBe(other)
    expect(await idsOf('.grok/sessions/w/7c0c/chat_history.jsonl', 'Weather?')).toEqual([one])
  })

  it('Hermes, which notes something among its messages, has them with the time of its session', async () => {
    const session = {
      session_id: '20260429_hermes',
      model: 'm',
      session_start: '2026-04-29T20:05:00.000Z',
      messages: [ASKED, { role: 'assistant', content: 'Cold.' }, { role: 'session_meta' }],
    }
    expect(outline(await recordsOf('session.json', json(session)))).toEqual([
      's1 {"model":"m"}',
      's1 openai user at 20:05:00',
      's1 openai assistant at 20:05:00',
      's1 source.openai-chat.session_meta at 20:05:00',
      's1 source.openai-chat.run (noise) at 20:05:00',
    ])
  })
})
