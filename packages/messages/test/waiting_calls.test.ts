import { expect, it } from 'vitest'
import { type TrackedCall, WaitingCalls } from '../src/session/waiting_calls.js'

const newCall = () => ({ answered: { message: false, event: false } }) as TrackedCall

it('looks at each call that is no longer wanted once, however many searches there are', () => {
  const waiting = new WaitingCalls()
  const calls = Array.from({ length: 10_000 }, newCall)
  for (const call of calls) waiting.add('a key', call)
  let looks = 0
  const isOpen = (call: TrackedCall) => {
    looks++
    return !call.answered.message
  }
  // All but the last are answered, from the last to the first, with a search after each.
  for (const call of calls.slice(0, -1).reverse()) {
    call.answered.message = true
    waiting.first('a key', isOpen)
  }
  expect(waiting.first('a key', isOpen)).toBe(calls.at(-1))
  expect(looks).toBeLessThan(2 * calls.length + 2)
})
