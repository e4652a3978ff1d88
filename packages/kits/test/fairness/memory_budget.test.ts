import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defaultMemoryBytes, MemoryShare, memoryBudget } from '../../src/fairness/fair_queue.ts'

const MAX = 1_000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

describe('a budget of memory', () => {
  it('leaves at least as much free as the largest holder has, whoever asks for how much', () => {
    const asks = fc.array(
      fc.record({ owner: fc.constantFrom('a', 'b', 'c'), bytes: fc.integer({ min: 1, max: MAX }) }),
    )
    fc.assert(
      fc.property(asks, (wanted) => {
        const budget = memoryBudget(MAX)
        const held = new Map<string, number>()
        for (const { owner, bytes } of wanted) {
          if (budget.tryTake(owner, bytes)) held.set(owner, (held.get(owner) ?? 0) + bytes)
          expect(budget.taken).toBe([...held.values()].reduce((sum, own) => sum + own, 0))
          // The last byte of a take is looked at before it is taken.
          if (held.has(owner)) expect(MAX - budget.taken + 1).toBeGreaterThanOrEqual(0)
        }
        for (const own of held.values()) expect(own).toBeLessThanOrEqual(MAX / 2 + 1)
        for (const [owner, own] of held) budget.giveBack(owner, own)
        expect(budget.taken).toBe(0)
      }),
    )
  })

  it('has something for a quiet owner, whatever the others took', () => {
    const budget = memoryBudget(MAX)
    for (const owner of ['a', 'b', 'c']) while (budget.tryTake(owner, 10));
    expect(budget.tryTake('quiet', 50)).toBe(true)
  })

  it('admits who waits as soon as enough is given back, the smaller want of another first', async () => {
    const budget = memoryBudget(MAX)
    budget.take('a', 500)
    budget.take('b', 400)
    const admitted: string[] = []
    void budget.wait('a', 50).then(() => admitted.push('a'))
    void budget.wait('c', 60).then(() => admitted.push('c'))
    await settle()
    expect(admitted).toEqual([])
    budget.giveBack('b', 30)
    await settle()
    expect(admitted).toEqual(['c'])
    budget.giveBack('a', 400)
    await settle()
    expect(admitted).toEqual(['c', 'a'])
    expect(budget.taken).toBe(500 + 400 - 30 - 400 + 60 + 50)
  })

  it('refuses with overloaded who waits for longer than a moment, and what nobody could get', async () => {
    const budget = memoryBudget(MAX)
    budget.take('a', 500)
    const refused = expect(budget.wait('a', 50)).rejects.toMatchObject({ error: 'overloaded' })
    await vi.advanceTimersByTimeAsync(1_000)
    await refused
    await expect(budget.wait('b', MAX)).rejects.toMatchObject({ error: 'overloaded' })
    expect([budget.taken, budget.counts]).toEqual([500, { waits: 1, refusals: 2 }])
  })

  it('is by default a part of the heap that this process may have, divided among processes of a machine', () => {
    expect(defaultMemoryBytes()).toBeGreaterThan(16_000_000)
    expect(defaultMemoryBytes(1_000)).toBeLessThan(defaultMemoryBytes())
  })
})

describe('a share of the budget', () => {
  it('grows and shrinks, and is given back as a whole when it is closed', async () => {
    const budget = memoryBudget(MAX)
    const share = new MemoryShare(budget, 'a')
    await share.hold(100)
    await share.hold(50)
    expect(budget.taken).toBe(100)
    share.keep(200)
    share.keep(30)
    expect(budget.taken).toBe(30)
    share.close()
    share.close()
    share.keep(40)
    expect(budget.taken).toBe(0)
    expect(share.tryHold(10)).toBe(false)
    await expect(share.hold(10)).rejects.toThrow()
    expect(budget.taken).toBe(0)
  })

  it('returns what it waited for where its caller left meanwhile', async () => {
    const budget = memoryBudget(MAX)
    budget.take('a', 500)
    const share = new MemoryShare(budget, 'a')
    const holding = share.hold(50)
    share.close()
    budget.giveBack('a', 500)
    await holding
    expect(budget.taken).toBe(0)
  })

  it('asks for a quarter of all at most, so that what is large is slow in a small service and not impossible', async () => {
    const budget = memoryBudget(MAX)
    await new MemoryShare(budget, 'a').hold(10 * MAX)
    expect(budget.taken).toBe(MAX / 4)
  })
})
