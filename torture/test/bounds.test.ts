import { describe, expect, it } from 'vitest'
import { brokenBounds } from '../bounds.ts'
import type { Rounds, Tally } from '../rounds.ts'

/** What a full run comes to when all is well. */
function held(): Rounds & { tallies: [Tally, Tally] } {
  const well = { missed: 0, recovery_ms_max: 900, awake_ms_max: 900, start_ms_max: 0 }
  return {
    count: 60,
    tallies: [
      { kind: 'node killed', kills: 1, struck: 50, ...well },
      { kind: 'deadlock', kills: 0, struck: 11, ...well, missed: 1 },
    ],
    away: {
      refused: 9,
      refused_ms_max: 1_900,
      refused_awake_ms_max: 1_900,
      unanswered: 1,
      unanswered_ms_max: 5_000,
      wrong: new Map(),
    },
    problems: [],
  }
}

describe('the bounds of a full run', () => {
  it('are held by a run in which every fault came often enough and the service was soon back', () => {
    expect(brokenBounds(held())).toEqual([])
  })

  it.each<[string, (rounds: ReturnType<typeof held>) => void, RegExp]>([
    ['fewer than 50 kills', ({ tallies }) => tallies[0].struck--, /^49 kills/],
    ['a fault without an effect', ({ tallies }) => tallies[1].missed++, /^deadlock: 9 times/],
    ['a slow return', ({ tallies }) => Object.assign(tallies[1], { awake_ms_max: 2_001 }), /^deadlock: back/],
    ['a slow refusal', ({ away }) => Object.assign(away, { refused_awake_ms_max: 2_001 }), /^503 came/],
  ])('are broken by %s', (_what, spoil, sentence) => {
    const rounds = held()
    spoil(rounds)
    expect(brokenBounds(rounds)).toEqual([expect.stringMatching(sentence)])
  })

  it('do not hold a busy machine against the service, nor a fault that cannot be done here', () => {
    const rounds = held()
    Object.assign(rounds.tallies[0], { recovery_ms_max: 9_000 })
    Object.assign(rounds.tallies[1], { struck: 0, missed: 0, skipped: 'it needs root' })
    expect(brokenBounds(rounds)).toEqual([])
  })
})
