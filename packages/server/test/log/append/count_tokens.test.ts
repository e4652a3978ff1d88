import { countedContent, readMessage } from '@annals/messages'
import fc from 'fast-check'
import { countTokens as countWithLibrary } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { countTokens } from '../../../src/log/append_bodies.ts'

const count = (content: string) =>
  countTokens(countedContent('openai', readMessage('openai', { role: 'user', content })))

const NO_SPECIAL = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() }

describe('the tokens of a message', () => {
  it('are those of o200k_base', () => {
    expect(count('')).toBe(0)
    expect(count('Where is my flight?')).toBe(5)
  })

  it('are as many as the library that the table is made of counts, in any text', () => {
    const word = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.string({ unit: 'grapheme', maxLength: 20 }),
      fc.string({
        unit: fc.constantFrom('a', 'B', 'ß', '語', '́', "'s", '0', '\n', ' ', '/', '\ud800'),
        maxLength: 20,
      }),
      fc.constantFrom('Unbelievable', 'Donaudampfschiff', 'https://example.org/a?b=c', '  return\n', '🧑‍🚀'),
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (words) => {
        const text = words.join('')
        expect(count(text)).toBe(countWithLibrary(text, NO_SPECIAL))
      }),
      { numRuns: 300 },
    )
  })

  it('are those of its pieces where a text has long runs without a break', () => {
    const run = fc
      .tuple(fc.constantFrom('ab', '語', 'ß', ' ', '\u00a0 ', '\u3000', '\ufeff', '\u2007\n'), fc.nat(150))
      .map(([unit, times]) => unit.repeat(times))
    fc.assert(
      fc.property(fc.array(run, { maxLength: 6 }), (runs) => {
        const text = runs.join('')
        const ends = [...text.matchAll(/\S{128}|\s{128}/g)].map(({ index }) => index + 128)
        const starts = [0, ...ends]
        const parts = starts.map((from, index) => text.slice(from, ends[index]))
        expect(count(text)).toBe(parts.reduce((sum, part) => sum + count(part), 0))
      }),
    )
  })

  it('count what looks like a special token as the text that it is', () => {
    expect(count('<|endoftext|>')).toBeGreaterThan(1)
  })

  it('are hardly more where slashes and ends of lines make one long run', () => {
    for (const run of ['/\n', '!/\r\n//', '语/\n\n\n']) {
      const text = run.repeat(500)
      const tokens = countWithLibrary(text, NO_SPECIAL)
      expect(count(text)).toBeGreaterThan(0.98 * tokens)
      expect(count(text)).toBeLessThan(1.02 * tokens)
    }
  })

  // Quadratic work takes minutes for each, and so ends with the timeout.
  it.each(['a', ' ', '\n', '書', '0', '/\n'])('are counted in a mebibyte of %j without a break', (run) => {
    expect(count(run.repeat(Math.floor(1_048_576 / Buffer.byteLength(run))))).toBeGreaterThan(0)
  })
})
