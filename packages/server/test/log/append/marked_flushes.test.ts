import { describe, expect, it } from 'vitest'
import { flush } from '../../../src/log/append/flush.ts'
import { planFlush } from '../../../src/log/append/flush_plan.ts'
import { FakeDatabase } from './fake_database.ts'
import { anEvent } from './requests.ts'

/** Whether a flush with these parameters marks the sessions that it changes. */
const isMarking = (parameters: readonly unknown[]) => parameters[11]

describe('a flush', () => {
  it('goes without marks only as long as it is known that there are no consumers', () => {
    const isMarked = (...unmarked_until: number[]) =>
      isMarking(
        planFlush(
          'p',
          unmarked_until.map((until) => ({ request: anEvent({ unmarked_until: until }), known: new Map() })),
        ).parameters,
      )
    const soon = performance.now() + 60_000
    expect(isMarked(soon, soon)).toBe(false)
    expect(isMarked(soon, performance.now() - 1)).toBe(true)
    expect(isMarked(Number.NEGATIVE_INFINITY)).toBe(true)
  })

  it('is sent with marks where that ran out while it waited for a connection', async () => {
    const sent: unknown[] = []
    const database = new FakeDatabase()
    const query: FakeDatabase['query'] = async (statement, parameters, onSending) => {
      await new Promise((resolve) => setTimeout(resolve, 60))
      onSending?.()
      sent.push(isMarking(parameters))
      return new FakeDatabase().query(statement, parameters)
    }
    const request = anEvent({ unmarked_until: performance.now() + 30 })
    const enqueued_at = performance.now()
    const outcome = new Promise((resolve, reject) => {
      const pending = { request, bytes: 1, enqueued_at, followers: [], resolve, reject }
      void flush(Object.assign(database, { query }), [pending], { wait_ms_max: 5_000 })
    })
    await expect(outcome).resolves.toMatchObject({ entries: [{ seq: 1 }] })
    expect(sent).toEqual([true])
  })
})
