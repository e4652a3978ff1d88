import { describe, expect, it } from 'vitest'
import type { ImportRecord } from '../src/records.ts'
import { blobsIn, formatOf, lines, recordsOf } from './reading.ts'

const CALL = { id: 't1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } }
const FAILED = { type: 'tool_result', tool_use_id: 't1', content: 'No such file', is_error: true }
/** What each of them says, in its own form. */
const SAID = [
  { role: 'user', content: 'Look' },
  { role: 'assistant', content: 'I look.', tool_calls: [CALL] },
  { role: 'user', content: [FAILED] },
  { role: 'assistant', content: 'It is not there.' },
]

const text = (text: string) => ({ type: 'text', text })

const SESSIONS: Record<string, unknown> = {
  Zed: {
    version: '0.3.0',
    title: 'A look',
    updated_at: '2026-01-15T10:00:00Z',
    model: { provider: 'anthropic', model: 'm' },
    messages: [
      { User: { id: 'u', content: [{ Text: 'Look' }] } },
      {
        Agent: {
          content: [{ Text: 'I look.' }, { ToolUse: { id: 't1', name: 'read', input: { path: 'a' } } }],
          tool_results: {
            t1: { tool_use_id: 't1', tool_name: 'read', is_error: true, content: { Text: 'No such file' } },
          },
        },
      },
      { Agent: { content: [{ Text: 'It is not there.' }], tool_results: {} } },
    ],
  },
  'an old Zed': {
    version: '0.2.0',
    summary: 'A look',
    model: { provider: 'anthropic', model: 'm' },
    messages: [
      { id: 0, role: 'user', segments: [text('Look')], tool_uses: [], tool_results: [] },
      {
        id: 1,
        role: 'assistant',
        segments: [text('I look.')],
        tool_uses: [{ id: 't1', name: 'read', input: { path: 'a' } }],
        tool_results: [{ tool_use_id: 't1', content: 'No such file', is_error: true }],
      },
      { id: 2, role: 'assistant', segments: [text('It is not there.')] },
    ],
  },
  'Amazon Q': {
    conversation_id: 'b1f5a9d0-0000-4000-8000-000000000001',
    title: 'A look',
    model_info: { model_id: 'm' },
    history: [
      {
        user: { content: { Prompt: { prompt: 'Look' } }, timestamp: '2026-01-15T10:00:00Z' },
        assistant: {
          ToolUse: {
            message_id: 'a',
            content: 'I look.',
            tool_uses: [{ id: 't1', name: 'read', args: { path: 'a' } }],
          },
        },
        request_metadata: { stream_end_timestamp_ms: 1_768_471_201_000 },
      },
      [
        {
          content: {
            ToolUseResults: {
              tool_use_results: [{ tool_use_id: 't1', content: [{ Text: 'No such file' }], status: 'Error' }],
            },
          },
        },
        { Response: { message_id: 'b', content: 'It is not there.' } },
      ],
    ],
  },
  Amp: {
    v: 3,
    id: 'T-0001',
    created: 1_768_471_200_000,
    title: 'A look',
    messages: [
      { role: 'user', messageId: 0, content: [text('Look')], meta: { sentAt: 1_768_471_200_000 } },
      {
        role: 'assistant',
        messageId: 1,
        content: [text('I look.'), { type: 'tool_use', id: 't1', name: 'read', input: { path: 'a' } }],
        usage: { model: 'm', inputTokens: 3 },
      },
      {
        role: 'user',
        messageId: 2,
        content: [
          {
            type: 'tool_result',
            toolUseID: 't1',
            run: { status: 'error', error: { message: 'No such file' } },
          },
        ],
      },
      { role: 'assistant', messageId: 3, content: [text('It is not there.')] },
    ],
  },
  'Amp, as its plugins see it': {
    id: 'T-0002',
    title: 'A look',
    agentMode: 'smart',
    messages: [
      { id: 'u1', role: 'user', content: [text('Look')] },
      {
        id: 'a1',
        role: 'assistant',
        content: [text('I look.'), { type: 'tool_use', id: 't1', name: 'read', input: { path: 'a' } }],
        usage: { model: 'm' },
      },
      {
        id: 'r1',
        role: 'user',
        content: [{ type: 'tool_result', toolUseID: 't1', status: 'error', output: 'No such file' }],
      },
      { id: 'a2', role: 'assistant', content: [text('It is not there.')] },
    ],
  },
  Crush: {
    id: 'c0ffee00-0000-4000-8000-000000000002',
    title: 'A look',
    messages: [
      { id: 'a', role: 'user', parts: [{ type: 'text', data: { text: 'Look' } }], created_at: 1_768_471_200 },
      {
        id: 'b',
        role: 'assistant',
        model: 'm',
        parts: [
          { type: 'text', data: { text: 'I look.' } },
          { type: 'tool_call', data: { id: 't1', name: 'read', input: '{"path":"a"}', finished: true } },
          { type: 'finish', data: { reason: 'tool_use' } },
        ],
      },
      {
        id: 'c',
        role: 'tool',
        parts: [
          { type: 'tool_result', data: { tool_call_id: 't1', content: 'No such file', is_error: true } },
        ],
      },
      { id: 'd', role: 'assistant', parts: [{ type: 'text', data: { text: 'It is not there.' } }] },
    ],
  },
}

function configsIn(records: ImportRecord[]): object {
  return Object.assign(
    {},
    ...records.map((record) =>
      record.kind === 'session' || record.kind === 'configs' ? record.configs : {},
    ),
  )
}

const isContent = ({ kind }: ImportRecord) => kind !== 'progress'

describe('a session of an agent with a form of its own', () => {
  it.each(Object.keys(SESSIONS))(
    'has calls joined with their results, and says which failed: %s',
    async (agent) => {
      const records = await recordsOf('session.json', JSON.stringify(SESSIONS[agent], null, 2))
      expect(formatOf(records)).toBe('agent-sessions')
      expect(blobsIn(records)).toEqual(SAID)
      expect(configsIn(records)).toEqual({ title: 'A look', model: 'm' })
      const inOneLine = await recordsOf('session.json', JSON.stringify(SESSIONS[agent]))
      expect(inOneLine.filter(isContent)).toHaveLength(records.filter(isContent).length)
    },
  )

  it.each(Object.keys(SESSIONS))('is all stored: %s', async (agent) => {
    const session = JSON.parse(JSON.stringify(SESSIONS[agent]))
    for (const [index, one] of (session.messages ?? session.history).entries())
      if (!Array.isArray(one)) one.unheard = `mark${index}!`
    session.unheard = 'mark!'
    const all = JSON.stringify(await recordsOf('session.json', JSON.stringify(session)))
    expect(all).toContain('mark!')
    expect(all).toContain('mark0!')
  })

  it('may be the text of a row of a database', async () => {
    const row = { key: '/x', value: JSON.stringify(SESSIONS['Amazon Q']) }
    const records = await recordsOf('rows.jsonl', lines(row))
    expect(blobsIn(records)).toEqual(SAID)
  })
})

describe('what Qwen Code writes', () => {
  it('is no session of Claude Code', async () => {
    const line = (uuid: string, parentUuid: string | null, more: object) => ({
      ...{ uuid, parentUuid, sessionId: 's', timestamp: '2026-01-15T10:00:00Z', cwd: '/x', version: '0.5' },
      ...more,
    })
    const records = await recordsOf(
      's.jsonl',
      lines(
        line('0', null, { type: 'system', subtype: 'ui_telemetry', systemPayload: {} }),
        line('1', '0', { type: 'user', message: { role: 'user', parts: [{ text: 'Look' }] } }),
        line('2', '1', {
          type: 'assistant',
          model: 'qwen3-coder',
          message: { role: 'model', parts: [{ functionCall: { id: 'c', name: 'ls', args: {} } }] },
          usageMetadata: { promptTokenCount: 3 },
        }),
        line('3', '2', {
          type: 'tool_result',
          message: {
            role: 'user',
            parts: [{ functionResponse: { id: 'c', name: 'ls', response: { error: 'denied' } } }],
          },
          toolCallResult: { callId: 'c', status: 'error' },
        }),
      ),
    )
    expect(formatOf(records)).toBe('gemini')
    expect(configsIn(records)).toEqual({
      agent: 'qwen-code',
      cwd: '/x',
      version: '0.5',
      model: 'qwen3-coder',
    })
    expect(blobsIn(records)).toMatchObject([
      { role: 'user' },
      { role: 'model', parts: [{ functionCall: { id: 'c' } }] },
      { role: 'user', parts: [{ functionResponse: { id: 'c', response: { error: 'denied' } } }] },
    ])
  })
})

describe('a session of Continue', () => {
  it('has the results that stand beside its messages', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'ls', arguments: '{"dir":"."}' } }
    const states = (status: string, output?: unknown) => [{ toolCallId: 'c', toolCall: call, status, output }]
    const session = (status: string, output?: unknown) =>
      JSON.stringify({
        sessionId: '0a1b2c3d-0000-4000-8000-000000000003',
        title: 'T',
        history: [
          { message: { role: 'user', content: 'List' }, contextItems: [] },
          {
            message: { role: 'assistant', content: '', toolCalls: [call] },
            toolCallStates: states(status, output),
          },
        ],
      })
    const done = blobsIn(await recordsOf('c.json', session('done', [{ name: 'o', content: 'a.ts' }])))
    expect(done).toMatchObject([
      { role: 'user', content: 'List' },
      { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'ls', arguments: '{"dir":"."}' } }] },
      { role: 'tool', tool_call_id: 'c', content: 'a.ts' },
    ])
    const failed = blobsIn(await recordsOf('c.json', session('errored', [{ name: 'o', content: 'denied' }])))
    expect(failed[2]).toMatchObject({ content: [{ tool_use_id: 'c', content: 'denied', is_error: true }] })
    expect(blobsIn(await recordsOf('c.json', session('generated')))).toHaveLength(2)
  })
})
