import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { align, compareSteps, isSame, type Step, stepsOf } from '../src/session/compare.ts'

const step: fc.Arbitrary<Step> = fc.record({
  seq: fc.nat(50),
  name: fc.constantFrom('user', 'find'),
  kind: fc.constantFrom('said', 'call'),
  text: fc.constantFrom('a', 'b', 'c'),
})

describe('two runs side by side', () => {
  it('have every step of both, once and in order, and nothing beside it that is of another kind or name', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.array(step, { maxLength: 30 }), (a, b) => {
        const rows = align(a, b)
        expect(rows.flatMap(({ left }) => left ?? [])).toEqual(a)
        expect(rows.flatMap(({ right }) => right ?? [])).toEqual(b)
        for (const { left, right } of rows)
          if (left && right) expect([left.kind, left.name]).toEqual([right.kind, right.name])
        expect(align(a, a).every(isSame)).toBe(true)
        expect(rows.filter(isSame).length).toBeGreaterThanOrEqual(mostInCommon(a, b))
      }),
    )
  })

  it('leave out what a view folds', () => {
    const stored = { id: 'e', session_id: 's', created_at: '2026-11-21T09:30:00Z' }
    const event = (seq: number, type: string, data: object) =>
      ({ ...stored, kind: 'event', seq, type, data }) as never
    const noise = { raw: { messageId: 1 }, noise: true }
    const log = [
      event(1, 'source.claude-code.file-history-snapshot', noise),
      event(2, 'bash_progress', { n: 1 }),
      event(3, 'deployed', { to: 'test' }),
    ]
    expect(stepsOf(log).map(({ seq }) => seq)).toEqual([3])
  })

  it('part where the first step differs, and have calls alone', () => {
    const said = (text: string): Step => ({ seq: 1, name: 'user', kind: 'said', text })
    const call = (name: string): Step => ({ seq: 2, name, kind: 'call', text: '{}' })
    const same = Array.from({ length: 2_000 }, (_, n) => said(String(n)))
    const left = [...same, call('look_up'), said('done')]
    const { parts_at, only_left, only_right, different } = compareSteps(left, [...same, said('done')])
    expect([parts_at, only_left.map(({ name }) => name), only_right, different]).toEqual([
      2_000,
      ['look_up'],
      [],
      1,
    ])
    expect(compareSteps(left, left).parts_at).toBeUndefined()
  })
})

/** The length of the longest common subsequence. */
function mostInCommon(a: Step[], b: Step[]): number {
  const key = ({ kind, name, text }: Step) => `${kind} ${name} ${text}`
  let row = new Array<number>(b.length + 1).fill(0)
  for (const one of a) {
    const next = [0]
    for (const [index, other] of b.entries())
      next.push(key(one) === key(other) ? row[index]! + 1 : Math.max(row[index + 1]!, next[index]!))
    row = next
  }
  return row[b.length]!
}
