import type { Rounds } from './rounds.ts'

/** The limits of a full run, besides losing nothing: the figures of docs/reliability.md. */
const KILLS_MIN = 50
const TIMES_MIN = 10
const BACK_MS_MAX = 2_000
const REFUSED_MS_MAX = 2_000
export const RSS_MB_MAX = 400

/** kill -9, of whatever process. */
export function killsOf({ tallies }: Rounds): number {
  return tallies.reduce((sum, { kills, struck }) => sum + kills * struck, 0)
}

/**
 * The limits that a full run exceeded, one sentence each. Time in which a node waited for a CPU does not count
 * against it.
 */
export function brokenBounds(rounds: Rounds): string[] {
  const broken: string[] = []
  const kills = killsOf(rounds)
  if (kills < KILLS_MIN) broken.push(`${kills} kills are less than ${KILLS_MIN}`)
  for (const { kind, struck, missed, skipped, awake_ms_max } of rounds.tallies) {
    if (skipped === undefined && struck - missed < TIMES_MIN)
      broken.push(`${kind}: ${struck - missed} times with an effect are less than ${TIMES_MIN}`)
    if (awake_ms_max > BACK_MS_MAX)
      broken.push(
        `${kind}: back after ${Math.round(awake_ms_max)} ms, more than ${BACK_MS_MAX}: standstill.log says why`,
      )
  }
  const { refused_awake_ms_max } = rounds.away
  if (refused_awake_ms_max > REFUSED_MS_MAX)
    broken.push(`503 came after ${Math.round(refused_awake_ms_max)} ms, more than ${REFUSED_MS_MAX}`)
  return broken
}
