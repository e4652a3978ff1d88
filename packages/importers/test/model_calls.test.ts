import { describe, expect, it } from 'vitest'
import { usageIn } from '../src/model_calls.ts'
import { entriesIn, lines, recordsOf } from './reading.ts'

const STAMP = '2026-10-01T10:00:00.000000Z'

async function callsIn(name: string, content: string) {
  const entries = entriesIn(await recordsOf(name, content))
  return entries.flatMap((entry) => {
    if (entry.kind !== 'event' || entry.type !== 'otel.span') return []
    const { last_id } = (entry.data.messages ?? {}) as { last_id?: string }
    const last = entries.find(({ id }) => id === last_id)
    const blob = last?.kind === 'message' ? last.blob : undefined
    return [{ ...entry.data, at: entry.occurred_at, role: blob?.role }]
  })
}

describe('what calls of models used', () => {
  it('is read from a session of Pi, with its cost, and not from an answer that was interrupted', async () => {
    const cost = { input: 0.1, total: 0.5 }
    const answer = (usage: object, content: unknown[]) => ({
      type: 'message',
      timestamp: STAMP,
      message: { role: 'assistant', content, model: 'sonnet-9', usage },
    })
    const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: { total: 0 } }
    const text = { type: 'text', text: 'Hello' }
    const session = lines(
      { type: 'session', id: 's', timestamp: STAMP, cwd: '/work' },
      { type: 'message', timestamp: STAMP, message: { role: 'user', content: [text] } },
      answer(none, []),
      answer({ input: 3, output: 68, cacheRead: 10, cacheWrite: 20, cost }, [text]),
    )
    const usage = {
      input_tokens: 3,
      output_tokens: 68,
      cached_tokens: 10,
      cache_write_tokens: 20,
      total_tokens: 101,
    }
    expect(await callsIn('s.jsonl', session)).toEqual([
      {
        operation: 'model',
        name: 'answer',
        model: 'sonnet-9',
        usage,
        cost_usd: 0.5,
        messages: { output: 1, last_id: expect.any(String) },
        at: STAMP,
        role: 'assistant',
      },
    ])
  })

  it('is read from a session of Gemini CLI, in which thoughts are counted apart', async () => {
    const made = { id: 'a', timestamp: STAMP, type: 'gemini', model: 'gemini-9', content: 'Hello' }
    const tokens = { input: 100, output: 20, cached: 40, thoughts: 5, tool: 0, total: 125 }
    const call = { id: 'c', name: 'ls', args: {}, status: 'success', result: [] }
    const session = { sessionId: 's', projectHash: 'p', startTime: STAMP, lastUpdated: STAMP }
    const messages = [{ ...made, tokens, toolCalls: [call] }]
    expect(await callsIn('s.json', JSON.stringify({ ...session, messages }))).toMatchObject([
      {
        model: 'gemini-9',
        usage: {
          input_tokens: 100,
          output_tokens: 25,
          cached_tokens: 40,
          reasoning_tokens: 5,
          total_tokens: 125,
        },
        messages: { output: 2 },
        role: 'model',
      },
    ])
  })

  it('is told once for the actions of OpenHands that one answer made', async () => {
    const usage = { prompt_tokens: 50, completion_tokens: 7, total_tokens: 57 }
    const action = (id: number, answer: string) => ({
      id,
      timestamp: STAMP,
      source: 'agent',
      action: 'run',
      args: { command: 'ls' },
      tool_call_metadata: {
        tool_call_id: `c${id}`,
        function_name: 'run',
        model_response: { id: answer, model: 'open-9', usage },
      },
    })
    const events = [action(1, 'a'), action(2, 'a'), action(3, 'b')]
    expect(await callsIn('trajectory.json', JSON.stringify(events))).toMatchObject([
      { model: 'open-9', usage: { input_tokens: 50, output_tokens: 7, total_tokens: 57 } },
      { model: 'open-9' },
    ])
  })

  it("is read from a trajectory's metrics, whose model may be the agent's", async () => {
    const metrics = { prompt_tokens: 90, completion_tokens: 9, cached_tokens: 60, cost_usd: 0.02 }
    const trajectory = {
      schema_version: 'ATIF-v1.6',
      session_id: 't',
      agent: { name: 'a', version: '1', model_name: 'gpt-9' },
      steps: [
        { step_id: 1, source: 'user', message: 'Hi' },
        { step_id: 2, source: 'agent', timestamp: STAMP, message: 'Hello', metrics },
      ],
    }
    expect(await callsIn('trajectory.json', JSON.stringify(trajectory))).toMatchObject([
      {
        model: 'gpt-9',
        cost_usd: 0.02,
        usage: { input_tokens: 90, output_tokens: 9, cached_tokens: 60, total_tokens: 99 },
        role: 'assistant',
      },
    ])
  })

  it.each([
    [{ input: 5, output: 6, reasoning: 2, cache: { read: 7, write: 8 } }, [5, 6, 7, 8, 2, 26]],
    [{ input: 5, output: 6, reasoning: 2, cache: { read: 7, write: 8 }, total: 28 }, [5, 8, 7, 8, 2, 28]],
    [
      { inputTokens: 5, outputTokens: 6, cacheReadInputTokens: 7, cacheCreationInputTokens: 8 },
      [5, 6, 7, 8, undefined, 26],
    ],
    [
      { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4 } },
      [9, 1, 4, undefined, undefined, 10],
    ],
  ])('is counted by whatever names an agent has: %j', (used, counts) => {
    const [input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, total_tokens] =
      counts
    expect({ ...usageIn(used) }).toEqual(
      JSON.parse(
        JSON.stringify({
          input_tokens,
          output_tokens,
          cached_tokens,
          cache_write_tokens,
          reasoning_tokens,
          total_tokens,
        }),
      ),
    )
  })

  it('is unknown where an agent counts nothing, or says something else', () => {
    for (const used of [{}, { input: 'a', output: 'b' }, { input: 0, output: 0 }, { input: 5 }])
      expect(usageIn(used)).toBeUndefined()
  })
})

describe('a rollout of Codex whose lines have no times', () => {
  it('happened when it began', async () => {
    const rollout = lines(
      { id: '0199-a', timestamp: STAMP, instructions: null },
      { record_type: 'state' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
    )
    const entries = entriesIn(await recordsOf('rollout.jsonl', rollout))
    expect(entries.map(({ occurred_at }) => occurred_at)).toEqual([STAMP, STAMP, STAMP])
  })
})
