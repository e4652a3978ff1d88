import { describe, expect, it } from 'vitest'
import { Turns } from '../../src/http/turns.ts'

/** Turns of a length in ms, one after another, in which everybody asks who is named; gives the time at the end. */
function pass(turns: Turns, from: number, lengths: number[], callers: string[]): number {
  let now = from
  for (const length of lengths) {
    turns.begin(now)
    for (const caller of callers) {
      turns.take()
      turns.know(caller)
    }
    now += length
    turns.end(now)
  }
  return now
}

/** A turn under way in which callers were taken in. */
function open(turns: Turns, now: number, callers: string[]): void {
  expect(turns.begin(now)).toBe(true)
  for (const caller of callers) {
    turns.take()
    turns.know(caller)
  }
}

const crowd = Array.from({ length: 300 }, () => 'busy')

describe('a turn', () => {
  it('takes everything in while turns are short, and for a while when they are long', () => {
    const turns = new Turns()
    let now = pass(turns, 0, [40, 40, 40, 40, 40, 40, 40, 40], crowd)
    open(turns, now, crowd)
    expect(turns.isFull(now + 249)).toBe(false)
    turns.end(now + 40)
    now = pass(turns, now + 40, [100, 100], crowd)
    open(turns, now, crowd)
    expect(turns.isFull(now + 49)).toBe(false)
  })

  it('that does not end is full when it has been too long for a while by itself', () => {
    const turns = new Turns()
    open(turns, 0, crowd)
    expect([turns.isFull(250), turns.isFull(251)]).toEqual([false, true])
  })

  it('is full after its time when turns have been long for a while, until one was short', () => {
    const turns = new Turns()
    let now = pass(turns, 0, [100, 100, 100], crowd)
    open(turns, now, crowd)
    expect([turns.isFull(now + 49), turns.isFull(now + 51)]).toEqual([false, true])
    turns.end(now + 100)
    now = pass(turns, now + 100, [40], crowd)
    open(turns, now, crowd)
    expect(turns.isFull(now + 51)).toBe(false)
  })

  it('is never full of few requests, however long they take', () => {
    const turns = new Turns()
    const few = crowd.slice(0, 249)
    const now = pass(turns, 0, [1_000, 1_000, 1_000], few)
    open(turns, now, few)
    expect(turns.isFull(now + 5_000)).toBe(false)
  })

  it('is not full where there was time to wait between the long ones', () => {
    const turns = new Turns()
    const now = pass(turns, 0, [100, 100, 100, 100], crowd)
    open(turns, now + 60, crowd)
    expect(turns.isFull(now + 160)).toBe(false)
  })

  it('knows who is quiet: far below the others, strangers counted together', () => {
    const turns = new Turns()
    open(turns, 0, [...crowd, 'quiet'])
    expect([turns.isQuiet('busy'), turns.isQuiet('quiet'), turns.isQuiet('new')]).toEqual([false, true, true])
    expect(turns.isQuiet(undefined)).toBe(true)
    for (let stranger = 0; stranger < 300; stranger += 1) turns.take()
    expect(turns.isQuiet(undefined)).toBe(false)
    turns.end(1)
    open(turns, 2, ['busy'])
    expect(turns.isQuiet('busy')).toBe(false)
  })
})
