import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ContextMessage, EditedMessages, type EditStrategy } from '../src/context/index.js'
import { arbitraryLog } from './arbitrary_log.ts'

const arbitraryCount = fc.integer({ min: 0, max: 4 })
const which = {
  keep_tools: fc.constantFrom([], ['policy'], ['search', 'policy']),
  gt_token: fc.constantFrom(0, 5, 40),
}
const arbitraryStrategy: fc.Arbitrary<EditStrategy> = fc.oneof(
  fc.record({
    type: fc.constant('remove_tool_result' as const),
    params: fc.record({ keep_recent_n_tool_results: arbitraryCount, ...which }, { requiredKeys: [] }),
  }),
  fc.record({
    type: fc.constant('remove_tool_call_params' as const),
    params: fc.record({ keep_recent_n_tool_calls: arbitraryCount, ...which }, { requiredKeys: [] }),
  }),
  fc.record({
    type: fc.constant('token_limit' as const),
    params: fc.record({ limit_tokens: fc.integer({ min: 0, max: 300 }) }),
  }),
  fc.record({
    type: fc.constant('middle_out' as const),
    params: fc.record({ token_reduce_to: fc.integer({ min: 0, max: 300 }) }),
  }),
)

function edited(log: ContextMessage[], strategies: EditStrategy[], editable = log.length): EditedMessages {
  const messages = new EditedMessages(log, editable)
  for (const strategy of strategies) messages.apply(strategy)
  return messages
}

const seqsOf = (messages: ContextMessage[]) => messages.map(({ seq }) => seq)
const shownOf = (log: ContextMessage[], { dropped }: EditedMessages) =>
  log.filter(({ seq }) => !dropped.has(seq))

describe('editing messages', () => {
  it('keeps instructions, the last message and all after the pin as they are, and calls beside their results', () => {
    const property = fc.property(
      arbitraryLog,
      fc.array(arbitraryStrategy, { maxLength: 4 }),
      fc.nat(),
      (log, strategies, pinned) => {
        const editable = pinned % (log.length + 1)
        const messages = edited(log, strategies, editable)
        const { dropped, cleared } = messages
        for (const [index, { seq, speaker, results }] of log.entries()) {
          if (speaker === 'instruction' || index >= editable - 1) expect(dropped.has(seq)).toBe(false)
          if (index >= editable) expect(cleared.edits.has(seq)).toBe(false)
          for (const { id } of results) {
            const call = log.find(({ calls }) => calls.some((made) => made.id === id))!
            expect(dropped.has(call.seq)).toBe(dropped.has(seq))
          }
        }
      },
    )
    fc.assert(property)
  })

  it('leaves out the oldest, or the middle, and no more than it must', () => {
    const log = Array.from(
      { length: 9 },
      (_, n): ContextMessage => ({
        seq: n + 1,
        tokens: 10,
        speaker: n % 2 ? 'assistant' : 'user',
        calls: [],
        results: [],
        length: 40,
      }),
    )
    const limited = (limit_tokens: number) =>
      seqsOf(shownOf(log, edited(log, [{ type: 'token_limit', params: { limit_tokens } }])))
    expect(limited(90)).toHaveLength(9)
    expect(limited(89)).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
    expect(limited(25)).toEqual([8, 9])
    expect(limited(0)).toEqual([9])
    const reduced = (token_reduce_to: number) =>
      seqsOf(shownOf(log, edited(log, [{ type: 'middle_out', params: { token_reduce_to } }])))
    expect(reduced(89)).toEqual([1, 2, 3, 4, 6, 7, 8, 9])
    expect(reduced(40)).toEqual([1, 2, 8, 9])
    expect(reduced(0)).toEqual([9])
  })

  it('gets down to the limit, or leaves out all that it may', () => {
    const property = fc.property(arbitraryLog, fc.integer({ min: 0, max: 200 }), (log, limit_tokens) => {
      const messages = edited(log, [{ type: 'token_limit', params: { limit_tokens } }])
      const shown = shownOf(log, messages)
      const tokens = shown.reduce((sum, message) => sum + message.tokens, 0)
      if (tokens <= limit_tokens) return
      // The last message ends the last turn alone, so all else goes that is no instruction.
      expect(seqsOf(shown)).toEqual(
        seqsOf(log.filter(({ speaker }, index) => speaker === 'instruction' || index === log.length - 1)),
      )
    })
    fc.assert(property)
  })

  it('clears all but the newest results and arguments, those of kept tools and short ones aside', () => {
    const log: ContextMessage[] = ['a', 'keep', 'b', 'c'].flatMap((name, n): ContextMessage[] => {
      const id = `call_${n}`
      const call = { seq: 2 * n + 1, tokens: 10, speaker: 'assistant' as const, length: 40 }
      return [
        { ...call, calls: [{ id, name, length: 20 }], results: [] },
        { ...call, seq: 2 * n + 2, speaker: 'tool', calls: [], results: [{ id, name: null, length: 40 }] },
      ]
    })
    const results = (params: object) => {
      const { edits, tokens } = edited(log, [{ type: 'remove_tool_result', params }]).cleared
      const texts = [...edits].map(([seq, edit]) => [seq, ...edit.results])
      for (const [seq] of texts) expect(tokens[Number(seq) - 1]).toBeLessThan(10)
      return texts
    }
    const keep_tools = ['keep']
    expect(results({ keep_recent_n_tool_results: 1, keep_tools })).toEqual([
      [2, 'Done'],
      [6, 'Done'],
    ])
    expect(results({})).toEqual([[2, 'Done']])
    expect(results({ keep_recent_n_tool_results: 3, tool_result_placeholder: '' })).toEqual([[2, '']])
    expect(results({ keep_recent_n_tool_results: 0, gt_token: 10 })).toEqual([])
    expect(results({ keep_recent_n_tool_results: 0, gt_token: 9 })).toHaveLength(4)
    const calls = edited(log, [
      { type: 'remove_tool_call_params', params: { keep_recent_n_tool_calls: 1, keep_tools } },
      { type: 'remove_tool_call_params', params: { keep_recent_n_tool_calls: 1, keep_tools } },
    ]).cleared
    expect([...calls.edits].map(([seq, { inputs }]) => [seq, ...inputs])).toEqual([
      [1, true],
      [5, true],
    ])
    expect(calls.tokens).toEqual([5, 10, 10, 10, 5, 10, 10, 10])
  })
})
