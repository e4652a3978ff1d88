import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { showProgress } from '../../src/terminal/progress.ts'
import { TimeLeft } from '../../src/terminal/time_left.ts'

/** What the estimate says while steps of a given length in seconds are done, each a hundredth of the whole. */
function estimates(steps: number[]): number[] {
  const time = new TimeLeft(0)
  let now = 0
  return steps.map((seconds, index) => {
    now += seconds
    time.step(index + 1, now)
    return time.left(100, now)!
  })
}

describe('the time that is left', () => {
  it('is right for work that goes on as it began', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 100, noNaN: true }), (seconds) => {
        for (const [index, left] of estimates(Array(99).fill(seconds)).entries())
          expect(left).toBeCloseTo((99 - index) * seconds, 3)
      }),
    )
  })

  it('follows work that becomes slower or faster', () => {
    const slower = estimates([...Array(50).fill(0.1), ...Array(20).fill(10)])
    expect(slower[49]).toBeCloseTo(5)
    expect(slower[69]).toBeCloseTo(300)
    const faster = estimates([...Array(20).fill(10), ...Array(70).fill(1)])
    expect(faster[19]).toBeCloseTo(800)
    expect(faster[89]).toBeCloseTo(10)
  })

  it('grows while a step takes longer than those before it', () => {
    const time = new TimeLeft(0)
    time.step(12, 0.7)
    expect(time.left(100, 0.7)).toBeCloseTo(5.1, 1)
    expect(time.left(100, 60)).toBeCloseTo(440, 0)
    expect(time.left(100, 600)).toBeCloseTo(4_400, 0)
  })

  it('is not known before anything is done, nor when all is', () => {
    const time = new TimeLeft(0)
    expect(time.left(100, 5)).toBeUndefined()
    time.step(100, 6)
    expect(time.left(100, 6)).toBeUndefined()
  })
})

describe('progress', () => {
  const written: string[] = []
  const isTerminal = Object.getOwnPropertyDescriptor(process.stderr, 'isTTY')
  const beTerminal = (value: boolean) =>
    Object.defineProperty(process.stderr, 'isTTY', { value, configurable: true })
  beforeEach(() => {
    vi.useFakeTimers()
    written.length = 0
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0)
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
    if (isTerminal) Object.defineProperty(process.stderr, 'isTTY', isTerminal)
    else Reflect.deleteProperty(process.stderr, 'isTTY')
  })

  it.each([
    ['a sentence', false],
    ['a bar', true],
  ])(
    'as %s goes on while the work says nothing, and does not promise an end that does not come',
    (_how, isTTY) => {
      beTerminal(isTTY)
      const progress = showProgress('Working', 'rows', 100)
      vi.advanceTimersByTime(700)
      progress.update(12)
      vi.advanceTimersByTime(80_000)
      progress.stop()
      const shown = written.join('').match(/[\d.]+ (s|min) left/g)!
      expect(shown.at(-1)).toBe('10 min left')
      expect(vi.getTimerCount()).toBe(0)
    },
  )
})
