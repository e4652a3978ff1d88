import { afterEach, describe, expect, it, vi } from 'vitest'
import { Answers } from '../../../src/log/append/appender.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

afterEach(() => {
  vi.useRealTimers()
})

describe('answers to appends', () => {
  it('are given over several turns of the event loop, each once and in order', async () => {
    const answers = new Answers()
    const given: number[] = []
    const all = Array.from({ length: 50 }, (_, number) => number)
    for (const number of all) answers.give('busy', (value: number) => given.push(value), number)
    expect(given).toEqual([])
    await turn()
    expect(given.length).toBeGreaterThan(0)
    expect(given.length).toBeLessThan(50)
    while (given.length < 50) await turn()
    await turn()
    expect(given).toEqual(all)
  })

  it('of one project do not wait for those of another', async () => {
    // A turn that takes long gives more answers.
    vi.useFakeTimers({ toFake: ['performance'] })
    const answers = new Answers()
    const given: string[] = []
    for (let n = 0; n < 500; n += 1) answers.give('busy', (value: string) => given.push(value), 'busy')
    answers.give('quiet', (value: string) => given.push(value), 'quiet')
    await turn()
    await turn()
    expect(given).toContain('quiet')
    expect(given.length).toBeLessThan(100)
  })
})
