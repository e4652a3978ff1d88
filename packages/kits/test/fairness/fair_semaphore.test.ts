import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FairSemaphore } from '../../src/fairness/fair_queue.ts'

const WAIT_MS = 1_000
const REFUSAL = new Error('refused')

/** Work that lasts until it is told to end. */
interface Task {
  owner: string
  state: 'waits' | 'runs' | 'done' | 'failed' | 'refused'
  end: (error?: Error) => void
}

/** Tasks of owners in a semaphore, each of which ends when the test says so. */
function tasksIn(semaphore: FairSemaphore) {
  const tasks: Task[] = []
  const of = (state: Task['state'], owner?: string) =>
    tasks.filter((task) => task.state === state && (owner === undefined || task.owner === owner))
  const start = (owner: string): Task => {
    const task: Task = { owner, state: 'waits', end: () => {} }
    tasks.push(task)
    const work = () =>
      new Promise<void>((resolve, reject) => {
        task.state = 'runs'
        task.end = (error) => (error ? reject(error) : resolve())
      })
    semaphore.run(owner, work).then(
      () => (task.state = 'done'),
      (error) => (task.state = error === REFUSAL ? 'refused' : 'failed'),
    )
    return task
  }
  return {
    tasks,
    of,
    start,
    startMany: (owner: string, count: number) => Array.from({ length: count }, () => start(owner)),
  }
}

const semaphoreOf = (places_max: number) =>
  new FairSemaphore({ places_max, wait_ms_max: WAIT_MS, refusal: () => REFUSAL })

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const settle = () => vi.advanceTimersByTimeAsync(0)

describe('a fair semaphore', () => {
  it('gives one owner half of the places and keeps the rest for others', async () => {
    const { of, start, startMany } = tasksIn(semaphoreOf(16))
    startMany('busy', 40)
    expect(of('runs')).toHaveLength(8)
    for (const owner of ['a', 'b', 'c']) expect(start(owner).state).toBe('runs')
  })

  it('begins work at once where a place is free: not even a microtask later', () => {
    const { start } = tasksIn(semaphoreOf(1))
    expect(start('alone').state).toBe('runs')
  })

  it.each([1, 2, 3])('serves one owner alone with %i places', async (places) => {
    const { of, startMany, tasks } = tasksIn(semaphoreOf(places))
    startMany('alone', 5)
    while (of('runs').length > 0) {
      for (const task of of('runs')) task.end()
      await settle()
    }
    expect(tasks.map(({ state }) => state)).toEqual(Array(5).fill('done'))
  })

  it('keeps a place free for a quiet owner however many others want more than there is', async () => {
    const { of, start, startMany } = tasksIn(semaphoreOf(16))
    const busy = ['a', 'b', 'c', 'd', 'e']
    for (const owner of busy) startMany(owner, 100)
    // They came one after the other and share unequally, until the first have given places back.
    for (let round = 0; round < 10; round++) {
      for (const owner of busy) of('runs', owner)[0]?.end()
      await settle()
    }
    expect(busy.map((owner) => of('runs', owner).length).every((held) => held >= 2 && held <= 3)).toBe(true)
    expect(start('quiet').state).toBe('runs')
  })

  it('lets whoever comes while a busy owner has its turn go before the next one of that owner', async () => {
    const { of, start, startMany, tasks } = tasksIn(semaphoreOf(1))
    startMany('busy', 4)
    const order: string[] = []
    for (let turns = 0; turns < 6; turns += 1) {
      if (turns === 1) for (const owner of ['a', 'b']) start(owner)
      const [running] = of('runs')
      order.push(running!.owner)
      running!.end()
      await settle()
    }
    expect(order).toEqual(['busy', 'busy', 'a', 'b', 'busy', 'busy'])
    expect(tasks.every(({ state }) => state === 'done')).toBe(true)
  })

  it('lets a busy owner have its turn, however many others come one after the other', async () => {
    const { of, start, startMany } = tasksIn(semaphoreOf(1))
    startMany('busy', 3)
    for (const owner of ['a', 'b']) start(owner)
    for (let turns = 0; turns < 9; turns += 1) {
      const [{ owner, end }] = of('runs') as [Task]
      if (owner !== 'busy') start(owner)
      end()
      await settle()
    }
    expect(of('done', 'busy')).toHaveLength(3)
  })

  it('returns a place when work fails, and passes the error on', async () => {
    const { of, startMany } = tasksIn(semaphoreOf(2))
    const [first, second] = startMany('a', 2)
    first!.end(new Error('broken'))
    await settle()
    expect([first!.state, second!.state]).toEqual(['failed', 'runs'])
    expect(of('refused')).toEqual([])
  })

  it('refuses who waited for too long, and lets those go who came later', async () => {
    const semaphore = semaphoreOf(2)
    const { start } = tasksIn(semaphore)
    const [running, early] = [start('a'), start('a')]
    await vi.advanceTimersByTimeAsync(WAIT_MS / 2)
    const late = start('a')
    await vi.advanceTimersByTimeAsync(WAIT_MS / 2 + 2)
    expect([running.state, early.state, late.state]).toEqual(['runs', 'refused', 'waits'])
    running.end()
    await settle()
    expect(late.state).toBe('runs')
    expect(semaphore.counts).toEqual({ waits: 2, refusals: 1 })
  })

  it('refuses hundreds that waited for too long in many turns of the event loop', async () => {
    const { of, startMany } = tasksIn(semaphoreOf(2))
    startMany('a', 301)
    await vi.advanceTimersByTimeAsync(WAIT_MS)
    for (let before = 0; of('refused').length < 300; before = of('refused').length) {
      expect(of('refused').length - before).toBeLessThanOrEqual(16)
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(of('waits')).toEqual([])
  })

  it('refuses at once what has no room to wait, whoever else has room', async () => {
    const semaphore = semaphoreOf(2)
    const { of, start, startMany } = tasksIn(semaphore)
    startMany('busy', 10_000)
    await settle()
    expect(semaphore.waiting).toBe(5_000)
    expect(of('refused')).toHaveLength(4_999)
    expect(start('quiet').state).toBe('runs')
    expect(start('quiet').state).toBe('waits')
  })
})

type Step = { owner: string } | { ends: number; fails: boolean } | { passes_ms: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ owner: fc.constantFrom('a', 'b', 'c', 'd') }) },
  { weight: 3, arbitrary: fc.record({ ends: fc.nat(20), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ passes_ms: fc.integer({ min: 1, max: WAIT_MS }) }) },
)

describe('whatever comes and goes', () => {
  it('never more run than there are places, nobody who holds none waits beside a free one, and all sums agree', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 9 }),
        fc.array(step, { maxLength: 80 }),
        async (places, steps) => {
          const semaphore = semaphoreOf(places)
          const { tasks, of, start } = tasksIn(semaphore)
          for (const one of steps) {
            if ('owner' in one) start(one.owner)
            else if ('passes_ms' in one) await vi.advanceTimersByTimeAsync(one.passes_ms)
            else {
              const running = of('runs')
              running[one.ends % running.length]?.end(one.fails ? new Error('failed') : undefined)
            }
            await settle()
            const free = places - of('runs').length
            expect(free).toBeGreaterThanOrEqual(0)
            for (const { owner } of of('waits')) expect(of('runs', owner).length).toBeGreaterThanOrEqual(free)
            expect(semaphore.waiting).toBe(of('waits').length)
            expect(semaphore.counts.refusals).toBe(of('refused').length)
          }
          while (of('runs').length > 0) {
            for (const task of of('runs')) task.end()
            await settle()
          }
          expect(of('waits')).toEqual([])
          expect(tasks.length).toBe(of('done').length + of('failed').length + of('refused').length)
        },
      ),
      { numRuns: 200 },
    )
  })
})
