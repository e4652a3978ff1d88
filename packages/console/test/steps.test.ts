import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { align, isSame, type Step } from '../src/compare/steps.ts'

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
      }),
    )
  })
})
