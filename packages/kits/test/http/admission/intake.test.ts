import { describe, expect, it } from 'vitest'
import {
  HELD_MIN,
  Intake,
  LATE_MS,
  PATIENCE_MS,
  TAKEN_A_TURN,
} from '../../../src/http/admission/admit_requests.ts'

/** An intake whose clock stands still unless it is moved; requests are named `caller number`. */
function anIntake() {
  const taken: string[] = []
  const clock = { now: 1_000 }
  const intake = new Intake<string>({
    take: (name) => taken.push(name),
    callerOf: (name) => (name.startsWith('stranger') ? undefined : name.split(' ')[0]),
    addressOf: (name) => name.split(' ')[0]!,
    now: () => clock.now,
  })
  const offer = (caller: string, count: number) =>
    Array.from({ length: count }, (_, number) => intake.offer(`${caller} ${number}`))
  /** Has requests be late for as long as patience lasts. */
  const wearOut = () => {
    clock.now += LATE_MS + 1
    intake.nextTurn()
    clock.now += PATIENCE_MS + 1
  }
  return { intake, taken, clock, offer, wearOut }
}

const CROWD = 2 * HELD_MIN

describe('the intake of requests', () => {
  it('takes few in at once, and the rest in later turns, so many in each, in their order', () => {
    const { intake, taken, offer } = anIntake()
    const count = 2 * TAKEN_A_TURN + 3
    offer('busy', count)
    expect(taken).toHaveLength(TAKEN_A_TURN)
    expect(intake.nextTurn()).toBe(true)
    expect(taken).toHaveLength(2 * TAKEN_A_TURN)
    expect(intake.nextTurn()).toBe(false)
    expect(taken).toEqual(Array.from({ length: count }, (_, number) => `busy ${number}`))
    offer('later', 1)
    expect(taken.at(-1)).toBe('later 0')
  })

  it('takes fewer in a turn in which connections arrive, however long it is, until requests are late', () => {
    const { intake, taken, clock, offer } = anIntake()
    offer('busy', CROWD)
    for (let turn = 1; turn <= 3; turn += 1) {
      clock.now += 50
      expect(intake.nextTurn(true)).toBe(true)
      expect(taken).toHaveLength(TAKEN_A_TURN + (turn * TAKEN_A_TURN) / 4)
    }
    const before = taken.length
    intake.nextTurn(true)
    expect(taken).toHaveLength(before + TAKEN_A_TURN)
  })

  it('takes a quiet caller in with the next turn, whatever waits of another', () => {
    const { intake, taken, offer } = anIntake()
    offer('busy', CROWD)
    offer('quiet', 2)
    intake.nextTurn()
    const turn = taken.slice(TAKEN_A_TURN)
    expect(turn.filter((name) => name.startsWith('quiet'))).toEqual(['quiet 0', 'quiet 1'])
    expect(turn).toHaveLength(TAKEN_A_TURN)
  })

  it('takes a stranger from elsewhere in soon, whatever waits of others, and gives strangers the turns of one caller', () => {
    const { intake, taken, offer } = anIntake()
    offer('stranger-guessing', CROWD)
    offer('busy', CROWD)
    offer('stranger-new', 1)
    intake.nextTurn()
    const turn = taken.slice(TAKEN_A_TURN)
    expect(turn).toContain('stranger-new 0')
    expect(turn.filter((name) => name.startsWith('stranger'))).toHaveLength(TAKEN_A_TURN / 2)
  })

  it('refuses no stranger from elsewhere while one sends too much', () => {
    const { offer, wearOut } = anIntake()
    offer('stranger-guessing', CROWD)
    wearOut()
    expect([...offer('stranger-guessing', 1), ...offer('stranger-new', 1)]).toEqual([false, true])
  })

  it('refuses nobody before requests have been late for a while', () => {
    const { intake, clock, offer } = anIntake()
    offer('busy', CROWD)
    clock.now += LATE_MS + 1
    intake.nextTurn()
    clock.now += PATIENCE_MS
    expect(offer('busy', 1)).toEqual([true])
  })

  it('then refuses who has most waiting, and takes whoever has little, strangers counted as one', () => {
    const { offer, wearOut } = anIntake()
    offer('busy', CROWD)
    offer('stranger', CROWD)
    wearOut()
    expect(offer('busy', 1)).toEqual([false])
    expect(offer('stranger', 1)).toEqual([false])
    expect(offer('quiet', 1)).toEqual([true])
  })

  it('refuses nobody any more when what is taken in is not late', () => {
    const { intake, clock, offer, wearOut } = anIntake()
    offer('busy', CROWD)
    wearOut()
    expect(offer('busy', 1)).toEqual([false])
    while (intake.nextTurn());
    offer('busy', CROWD)
    clock.now += LATE_MS
    intake.nextTurn()
    clock.now += PATIENCE_MS + 1
    expect(offer('busy', 1)).toEqual([true])
  })

  it('refuses nobody when few wait, however long they do', () => {
    const { offer, wearOut } = anIntake()
    offer('busy', HELD_MIN)
    wearOut()
    expect(offer('busy', 1)).toEqual([true])
  })
})
