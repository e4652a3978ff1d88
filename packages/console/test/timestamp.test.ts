import { describe, expect, it } from 'vitest'
import { axisText, durationText } from '../src/parts/timestamp.tsx'

describe('a duration', () => {
  it.each([
    [0.4, '<1 ms'],
    [188, '188 ms'],
    [1_300, '1.3 s'],
    [22_000, '22 s'],
    [73_000, '1 min 13 s'],
    [3_661_000, '1 h 1 min'],
    [90_000_000, '1 d 1 h'],
  ])('of %d ms is %s', (ms, text) => expect(durationText(ms)).toBe(text))

  it.each([
    [999.6, '1.0 s'],
    [9_970, '10 s'],
    [59_700, '1 min 0 s'],
    [119_700, '2 min 0 s'],
    [3_599_700, '1 h 0 min'],
    [7_199_000, '2 h 0 min'],
    [86_399_000, '1 d 0 h'],
    [172_700_000, '2 d 0 h'],
  ])('of %d ms carries over to %s', (ms, text) => expect(durationText(ms)).toBe(text))
})

describe('a mark of an axis', () => {
  const marked = (at: string, days: number) => axisText(new Date(at).getTime(), days * 86_400)

  it('has the year where one begins, so that months of two years are told apart', () => {
    expect(marked('2026-09-01T00:00', 30)).toBe('Sep 1')
    expect(marked('2026-01-01T00:00', 30)).toBe('2026')
    expect(marked('2026-01-02T00:00', 1)).toBe('Jan 2')
  })
})
