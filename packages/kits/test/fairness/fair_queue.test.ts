import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FairQueue, Quota } from '../../src/fairness/fair_queue.ts'

const arrivals = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 })

describe('a fair queue', () => {
  it('returns everything once, what belongs to one owner in its order', () => {
    fc.assert(
      fc.property(arrivals, (owners) => {
        const queue = new FairQueue<{ owner: string; number: number }>()
        for (const [number, owner] of owners.entries()) queue.add(owner, { owner, number })
        const given = owners.map(() => queue.next()!)
        expect([queue.size, queue.next()]).toEqual([0, undefined])
        for (const owner of new Set(owners)) {
          const numbers = given.filter((item) => item.owner === owner).map(({ number }) => number)
          expect(numbers).toEqual(owners.flatMap((name, number) => (name === owner ? number : [])))
        }
      }),
    )
  })

  it('lets nobody wait for longer than one turn of each other owner', () => {
    fc.assert(
      fc.property(arrivals, arrivals, (before, after) => {
        const queue = new FairQueue<string>()
        for (const owner of before) queue.add(owner, owner)
        queue.next()
        for (const owner of after) queue.add(owner, owner)
        queue.add('quiet', 'quiet')
        const others = new Set([...before, ...after]).size
        const given = Array.from({ length: others + 1 }, () => queue.next())
        expect(given).toContain('quiet')
      }),
    )
  })

  it('knows of whom far less waits than of others', () => {
    const queue = new FairQueue<number>()
    for (let number = 0; number < 10; number += 1) queue.add('busy', number)
    queue.add('quiet', 0)
    expect(['busy', 'quiet', 'new'].map((owner) => queue.isQuiet(owner))).toEqual([false, true, true])
  })
})

describe('the quota of a turn', () => {
  it('is the same for short turns, and makes up for long ones, a rest between turns aside', () => {
    const quota = new Quota(16)
    const turns = [0, 0.5, 2.4, 42.4, 43].map((now) => quota.turn(now))
    expect(turns).toEqual([16, 16, 16, 640, 16])
    quota.rest()
    expect(quota.turn(1_000)).toBe(16)
  })
})
