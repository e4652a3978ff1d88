/** What is measured beside each other, by name: each gives one result a round. */
export type Subjects<Result> = Record<string, () => Promise<Result>>

/**
 * Runs every subject once a round, so that a figure and its yardstick are taken in the same minute. Each round begins
 * with another subject, so that none always comes after the same one.
 */
export async function interleave<Result>(
  rounds: number,
  subjects: Subjects<Result>,
  say: (sentence: string) => void,
): Promise<Record<string, Result[]>> {
  const names = Object.keys(subjects)
  const results: Record<string, Result[]> = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    const first = round % names.length
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
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
