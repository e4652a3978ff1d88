import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type IndexedCall, type IndexState, indexCalls, type LogEntry } from '../src/session/index.js'
import { logOf, SESSION_VECTORS } from './session_vectors.js'

const EMPTY: IndexState = { last_seq: 0, calls: [], question: null, question_seq: null, stream: '' }

/** The calls of a log that is read in pieces, as a store has them behind the last one. */
function indexed(log: LogEntry[], cuts: number[]): IndexedCall[] {
  const stored = new Map<number, IndexedCall>()
  let state = EMPTY
  let from = 0
  for (const to of [...new Set(cuts.map((cut) => cut % (log.length + 1)))]
    .sort((a, b) => a - b)
    .concat(log.length)) {
    const piece = indexCalls(state, log.slice(from, to))
    for (const call of piece.calls) stored.set(call.number, call)
    const calls = [...stored.values()].sort((a, b) => a.number - b.number)
    // As it comes from a database.
    state = JSON.parse(JSON.stringify({ ...piece, last_seq: to, calls }))
    from = to
  }
  return [...stored.values()].sort((a, b) => a.number - b.number)
}

const step = fc.record({
  name: fc.constantFrom('find', 'book'),
  result: fc.constantFrom('fine', 'Error: no', undefined),
  has_id: fc.boolean(),
  format: fc.constantFrom('anthropic', 'openai', 'gemini', 'event', 'both'),
  said: fc.boolean(),
  progress: fc.nat(3),
})

function entriesOf(steps: Array<typeof step extends fc.Arbitrary<infer T> ? T : never>) {
  return steps.flatMap(({ name, result, has_id, format, said, progress }, index) => {
    const id = `call_${index}`
    const blobs: Record<string, unknown[]> = {
      anthropic: [
        { role: 'assistant', content: [{ type: 'tool_use', id, name, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: result }] },
      ],
      openai: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: id, content: result },
      ],
      gemini: [
        { role: 'model', parts: [{ functionCall: { ...(has_id && { id }), name, args: {} } }] },
        {
          role: 'user',
          parts: [{ functionResponse: { ...(has_id && { id }), name, response: { output: result } } }],
        },
      ],
    }
    const messages = (blobs[format === 'both' ? 'openai' : format] ?? [])
      .slice(0, result === undefined ? 1 : 2)
      .map((blob) => ({ kind: 'message', format: format === 'both' ? 'openai' : format, blob }))
    const events = [
      { kind: 'event', type: 'tool_call', data: { ...(has_id && { id }), name, arguments: {} } },
      ...(result === undefined
        ? []
        : [{ kind: 'event', type: 'tool_result', data: { ...(has_id && { call_id: id }), name, result } }]),
    ]
    return [
      ...messages,
      ...(format === 'event' || format === 'both' ? events : []),
      ...Array.from({ length: progress }, () => ({ kind: 'event', type: 'progress', data: {} })),
      ...(said
        ? [{ kind: 'message', format: 'openai', blob: { role: 'assistant', content: `So ${index}.` } }]
        : []),
    ]
  })
}

const find = { name: 'find', has_id: false, said: false, progress: 0 }
/** The last event records the first call, after an event has recorded the second one. */
const EVENT_OF_AN_EARLIER_CALL = [
  { ...find, result: 'fine', format: 'anthropic' },
  { ...find, result: undefined, has_id: true, format: 'both' },
  { ...find, result: 'fine', format: 'event' },
]

describe('an index of calls', () => {
  it('is the same wherever the log is cut into pieces', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 6 }), (steps, cuts) => {
        const log = logOf({ entries: entriesOf(steps) })
        expect(indexed(log, cuts)).toEqual(indexed(log, []))
      }),
      { examples: [[EVENT_OF_AN_EARLIER_CALL, [5]]] },
    )
  })

  it.each(SESSION_VECTORS)('has every call of "$name", read entry by entry', ({ entries, calls }) => {
    const log = logOf({ entries })
    const found = indexed(
      log,
      log.map((_, index) => index),
    )
    const told = found.map(({ name, seq, failed, result_seq }) => ({ name, seq, failed, result_seq }))
    const verdicts: Record<string, boolean | null> = { open: null, ok: false, failed: true }
    expect(told).toEqual(
      calls.map(({ name, seq, verdict, result }) => ({
        name,
        seq,
        failed: verdicts[verdict],
        result_seq: result?.seq ?? null,
      })),
    )
  })

  it('has what a failed call returned, and what the assistant said next, until either is retracted', () => {
    const log = logOf({
      entries: [
        { kind: 'message', format: 'openai', blob: { role: 'user', content: 'Find it.' } },
        { kind: 'event', type: 'tool_call', data: { id: 'a', name: 'find', arguments: {} } },
        { kind: 'event', type: 'tool_result', data: { call_id: 'a', result: 'Error: no such thing' } },
        { kind: 'message', format: 'openai', blob: { role: 'assistant', content: 'It is not there.' } },
        { kind: 'event', type: 'annals.retraction', data: { seqs: [3] } },
        { kind: 'event', type: 'tool_result', data: { call_id: 'a', result: 'fine' } },
        { kind: 'event', type: 'annals.retraction', data: { seqs: [1, 2] } },
      ],
    })
    // The role of a message is that of its entry here.
    for (const entry of log) if (entry.kind === 'message') entry.role = (entry.blob as { role: string }).role
    const at = (to: number) => indexCalls(EMPTY, log.slice(0, to))
    expect(at(4)).toMatchObject({
      question: 'Find it.',
      calls: [{ failed: true, result: 'Error: no such thing', said: 'It is not there.', said_seq: 4 }],
    })
    expect(at(5).calls).toMatchObject([{ failed: null, result: null, said: null }])
    expect(at(6).calls).toMatchObject([{ failed: false, result_seq: 6, is_retracted: false }])
    expect(at(7)).toMatchObject({ question: null, calls: [{ is_retracted: true }] })
  })
})
