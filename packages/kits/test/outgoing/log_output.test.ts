import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LogOutput } from '../../src/outgoing/log_output.ts'

/** What a write does next: takes so many bytes, or fails. */
type Turn = number | 'EAGAIN' | 'ENOSPC' | 'EPIPE' | 'EIO' | 'EBADF'

function newOutput() {
  const seen = { text: '', writes: 0, lost: 0, resumed: [] as number[], turns: [] as Turn[] }
  const events = {
    onLost: (lines: number) => {
      seen.lost += lines
    },
    onResumed: (lines: number) => void seen.resumed.push(lines),
  }
  const output = new LogOutput(events, (bytes) => {
    const turn = seen.turns.shift() ?? bytes.length
    if (typeof turn === 'string') throw Object.assign(new Error(turn), { code: turn })
    const written = Math.min(turn, bytes.length)
    seen.text += Buffer.from(bytes.subarray(0, written)).toString('latin1')
    seen.writes += 1
    return written
  })
  return { seen, output }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('the output of the log', () => {
  it('writes lines together, in their order, before a moment has passed', () => {
    const { seen, output } = newOutput()
    for (let n = 0; n < 10; n += 1) output.write(`${n}\n`)
    expect(seen.text).toBe('')
    vi.advanceTimersByTime(50)
    expect(seen).toMatchObject({ text: '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n', writes: 1 })
    output.write('again\n')
    vi.advanceTimersByTime(50)
    expect(seen.writes).toBe(2)
  })

  it('writes at once where there are many lines, and when it is asked to', () => {
    const { seen, output } = newOutput()
    const line = `${'x'.repeat(999)}\n`
    for (let n = 0; n < 17; n += 1) output.write(line)
    expect(seen).toMatchObject({ text: line.repeat(17), writes: 1 })
    output.write(line)
    output.flush()
    output.flush()
    expect(seen).toMatchObject({ text: line.repeat(18), writes: 2 })
  })

  it('goes on when there is space again, and says how many lines were lost', () => {
    const { seen, output } = newOutput()
    seen.turns = [3, 'ENOSPC', 'ENOSPC']
    for (const line of ['first\nsecond\n', 'third\n', 'fourth\n']) {
      output.write(line)
      output.flush()
    }
    expect(seen).toMatchObject({ text: 'fir\nfourth\n', lost: 3, resumed: [3] })
  })

  it('keeps lines for a reader that is behind, and loses those beyond a bound', () => {
    const { seen, output } = newOutput()
    seen.turns = Array.from({ length: 10_000 }, () => 'EAGAIN' as const)
    const line = `${'x'.repeat(999)}\n`
    for (let n = 0; n < 2_000; n += 1) output.write(line)
    expect(seen.lost).toBeGreaterThan(900)
    expect(seen.lost).toBeLessThan(1_000)
    seen.turns = []
    vi.advanceTimersByTime(50)
    expect(seen.text).toBe(line.repeat(2_000 - seen.lost))
    expect(seen.resumed).toEqual([seen.lost])
  })

  it('ends in a moment, whatever the reader does', () => {
    vi.useRealTimers()
    const { seen, output } = newOutput()
    seen.turns = Array.from({ length: 10_000 }, () => 'EAGAIN' as const)
    output.write('line\n')
    output.end()
    seen.turns = ['EAGAIN', 'EAGAIN', 2]
    output.end()
    expect(seen.text).toBe('line\n')
  })

  it('whatever its writes do: shows lines in order, none in halves that look whole, and counts the rest', () => {
    const turn = fc.oneof(fc.nat(60), fc.constantFrom<Turn>('EAGAIN', 'ENOSPC', 'EPIPE', 'EIO', 'EBADF'))
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(40), fc.boolean())), fc.array(turn), (lines, turns) => {
        const { seen, output } = newOutput()
        seen.turns = [...turns]
        const sent = lines.map(([length], n) => `<${n} ${'x'.repeat(length)}>`)
        for (const [n, line] of sent.entries()) {
          output.write(`${line}\n`)
          if (lines[n]![1]) output.flush()
        }
        seen.turns = []
        output.write('<last>\n')
        output.flush()
        const shown = seen.text.split('\n')
        expect(shown.pop()).toBe('')
        const whole = shown.filter((line) => line.endsWith('>') && line.startsWith('<'))
        expect(whole).toEqual([...sent, '<last>'].filter((line) => whole.includes(line)))
        // What is not whole is the beginning of a line that is counted as lost.
        for (const part of shown.filter((line) => !whole.includes(line)))
          expect(sent.some((line) => line.startsWith(part))).toBe(true)
        expect(whole.length + seen.lost).toBe(sent.length + 1)
        expect(seen.resumed.reduce((sum, lines) => sum + lines, 0)).toBe(seen.lost)
      }),
      { numRuns: 500 },
    )
  })
})
