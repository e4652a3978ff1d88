import type { TimelineItem } from '@annals/client'
import { describe, expect, it } from 'vitest'
import { joinCalls } from '../src/session/calls.ts'
import { outcomeOf } from '../src/sessions/outcome.ts'

const message = (seq: number, format: string, blob: object) =>
  ({
    kind: 'message',
    seq,
    format,
    blob,
    role: 'user',
    created_at: `2026-11-21T09:00:0${seq}.000000Z`,
  }) as unknown as TimelineItem
const event = (seq: number, type: string, data: object) =>
  ({
    kind: 'event',
    seq,
    type,
    data,
    created_at: `2026-11-21T09:00:0${seq}.000000Z`,
  }) as unknown as TimelineItem

const joined = (...items: TimelineItem[]) =>
  joinCalls(items).all.map(({ number, seq, name, input, result }) => ({
    number,
    seq,
    name,
    input,
    result: result?.output,
    at: result?.seq,
    is_error: result?.is_error,
  }))

describe('a tool call and its result', () => {
  it.each([
    [
      'openai',
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'find', arguments: '{"n":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: '{"ok":true}' },
    ],
    [
      'anthropic',
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'find', input: { n: 1 } }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: '{"ok":true}' }] },
        ],
      },
    ],
    [
      'gemini',
      { role: 'model', parts: [{ functionCall: { name: 'find', args: { n: 1 } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'find', response: { ok: true } } }] },
    ],
    [
      'acontext',
      {
        role: 'assistant',
        parts: [{ type: 'tool-call', meta: { id: 'c', name: 'find', arguments: '{"n":1}' } }],
      },
      { role: 'user', parts: [{ type: 'tool-result', text: '{"ok":true}', meta: { tool_call_id: 'c' } }] },
    ],
  ])('are joined in the format %s', (format, call, result) => {
    const found = joined(message(1, format, call), message(2, format, result))
    expect(found).toEqual([
      { number: 1, seq: 1, name: 'find', input: { n: 1 }, result: { ok: true }, at: 2, is_error: false },
    ])
  })

  it('are joined by id, whatever their order, and by name in order where there is no id', () => {
    const calls = message(1, 'openai', {
      role: 'assistant',
      tool_calls: ['a', 'b'].map((id) => ({
        id,
        type: 'function',
        function: { name: 'find', arguments: '{}' },
      })),
    })
    const answer = (seq: number, id: string) =>
      message(seq, 'openai', { role: 'tool', tool_call_id: id, content: `of ${id}` })
    expect(joined(calls, answer(2, 'b'), answer(3, 'a')).map(({ result }) => result)).toEqual([
      'of a',
      'of b',
    ])
    const events = [
      event(1, 'tool_call', { name: 'x' }),
      event(2, 'tool_call', { name: 'x' }),
      event(3, 'tool_result', { name: 'x', result: 1 }),
    ]
    expect(joined(...events).map(({ result }) => result)).toEqual([1, undefined])
  })

  it('count as failed where the result says so', () => {
    const of = (data: object) =>
      joined(event(1, 'tool_call', { id: '1', name: 'x' }), event(2, 'tool_result', { id: '1', ...data }))[0]!
        .is_error
    expect([
      of({ result: 'Error: no' }),
      of({ is_error: true }),
      of({ error: 'timeout' }),
      of({ result: { error: 'no' } }),
    ]).toEqual([true, true, true, true])
    expect([of({ result: 'fine' }), of({ result: { error: null } })]).toEqual([false, false])
  })
})

describe('an outcome', () => {
  it.each([
    [{ reward: 0 }, 'failed'],
    [{ reward: 1 }, 'passed'],
    [{ reward: 0.5 }, undefined],
    [{ success: false }, 'failed'],
    [{ run: { status: 'timed out' } }, 'failed'],
    [{ outcome: 'resolved' }, 'passed'],
    [{ outcome: 'running' }, undefined],
    [{ exit_code: 2 }, 'failed'],
    [{ error: '' }, undefined],
    [{ deep: { deeper: { reward: 0 } } }, undefined],
  ])('of configs %j is %s', (configs, verdict) => {
    expect(outcomeOf(configs)?.verdict).toBe(verdict)
  })
})
