/** What is measured beside each other, by name: each gives one result a round. */
export type Subjects<Result> = Record<string, () => Promise<Result>>

/**
 * Runs every subject once a round, so that a figure and its yardstick are taken in the same minute. Every other
 * round goes backwards, so that none always comes after the same one, and neighbours stay neighbours: a machine that
 * others share is faster in one minute than in the next.
 */
export async function interleave<Result>(
  rounds: number,
  subjects: Subjects<Result>,
  say: (sentence: string) => void,
): Promise<Record<string, Result[]>> {
  const names = Object.keys(subjects)
  const results: Record<string, Result[]> = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      say(`round ${round + 1} of ${rounds}: ${name}`)
      results[name]!.push(await subjects[name]!())
    }
  }
  return results
}

/** Round by round, one divided by the other. */
export function ratios(of: readonly number[], to: readonly number[]): number[] {
  return of.map((value, round) => value / to[round]!)
}
