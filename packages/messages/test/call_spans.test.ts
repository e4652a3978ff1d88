import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CallSpans, type ContextMessage } from '../src/context/index.js'

const message = (seq: number, speaker: ContextMessage['speaker'], calls: string[], results: string[]) => ({
  ...{ seq, tokens: 1, length: 1, speaker },
  calls: calls.map((id) => ({ id, name: 'look', length: 2 })),
  results: results.map((id) => ({ id, name: null, length: 2 })),
})

/** Whether a place parts a call from a result, found the slow way; the ids are answered in any order, or never. */
function parts(log: ContextMessage[], seq: number): boolean {
  const user_seq = Math.max(0, ...log.filter(({ speaker }) => speaker === 'user').map((one) => one.seq))
  return log.some(({ seq: call, calls }) =>
    calls.some(({ id }) => {
      const last = log.findLast(
        (one) => one.seq >= call && one.results.some((result) => result.id === id),
      )?.seq
      const end = last ?? (call > user_seq ? Number.POSITIVE_INFINITY : call)
      return call <= seq && seq < end
    }),
  )
}

const step = fc.record({
  speaker: fc.constantFrom('user', 'assistant', 'tool') as fc.Arbitrary<ContextMessage['speaker']>,
  calls: fc.nat(2),
  answered: fc.array(fc.nat(8), { maxLength: 3 }),
})

function logOf(steps: Array<{ speaker: ContextMessage['speaker']; calls: number; answered: number[] }>) {
  let made = 0
  return steps.map(({ speaker, calls, answered }, index) => {
    const results = [...new Set(answered)].filter((id) => id < made).map(String)
    const ids = Array.from({ length: calls }, () => String(made++))
    return message(index + 1, speaker, ids, results)
  })
}

describe('the places at which a log may be divided', () => {
  it('are those that part no call from its results, and the nearest ones are named', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 24 }), (steps) => {
        const log = logOf(steps)
        const spans = new CallSpans()
        for (const one of log) spans.add(one)
        for (let seq = 0; seq <= log.length; seq++) {
          const near = spans.partedAt(seq)
          expect(near !== undefined, `at ${seq}`).toBe(parts(log, seq))
          if (!near) continue
          const all = Array.from({ length: log.length + 1 }, (_, at) => at).filter((at) => !parts(log, at))
          expect(near).toEqual({
            before: all.findLast((at) => at < seq),
            after: all.find((at) => at > seq),
          })
        }
      }),
    )
  })

  it('part no result from its call that was stored after it, unless the user spoke in between', () => {
    const spans = new CallSpans()
    for (const one of [
      message(1, 'user', [], []),
      message(2, 'tool', [], ['a', 'b']),
      message(3, 'assistant', ['a'], []),
      message(4, 'user', [], []),
      message(5, 'assistant', ['b'], []),
    ])
      spans.add(one)
    expect(spans.partedAt(2)).toEqual({ before: 1, after: 3 })
    expect([1, 3, 4].map((seq) => spans.partedAt(seq))).toEqual([undefined, undefined, undefined])
    expect(spans.partedFrom(new Set([3]))).toEqual({ seq: 3, other: 2 })
    expect(spans.partedAt(5)).toEqual({ before: 4, after: undefined })
  })

  it('are found in linear time, also where every call waits for the next one', () => {
    const spans = new CallSpans()
    const count = 100_000
    for (let seq = 1; seq <= count; seq++)
      spans.add(message(seq, 'assistant', [`c${seq}`], seq > 2 ? [`c${seq - 2}`] : []))
    expect(spans.partedAt(count - 10)).toEqual({ before: 0, after: undefined })
  })
})
