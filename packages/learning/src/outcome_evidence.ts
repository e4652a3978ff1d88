/** A run of a task, and whether it did what a procedure says. */
export interface TaskRun {
  group: string
  has_succeeded: boolean
  follows: boolean
}

/** Tasks in which runs differ, both in what they did and in how they ended. */
const TASKS_MIN = 5
/** Standard errors above what chance gives: one in 4,000, as many procedures are looked at. */
const DEVIATION_MIN = 3.5

/**
 * Whether runs that follow a procedure succeed more often than other runs of the same task, beyond chance (the test of
 * Mantel and Haenszel). Tasks are not compared with each other: what is done in easy tasks would look like a reason for
 * success.
 */
export function hasOutcomeEvidence(runs: Iterable<TaskRun>): boolean {
  const tasks = new Map<string, { runs: number; followers: number; successes: number; both: number }>()
  for (const { group, has_succeeded, follows } of runs) {
    const task = tasks.get(group) ?? { runs: 0, followers: 0, successes: 0, both: 0 }
    task.runs += 1
    task.followers += Number(follows)
    task.successes += Number(has_succeeded)
    task.both += Number(follows && has_succeeded)
    tasks.set(group, task)
  }
  let informative = 0
  let excess = 0
  let variance = 0
  for (const { runs: n, followers, successes, both } of tasks.values()) {
    const product = followers * (n - followers) * successes * (n - successes)
    if (product === 0) continue
    informative += 1
    excess += both - (followers * successes) / n
    variance += product / (n * n * (n - 1))
  }
  return informative >= TASKS_MIN && excess >= DEVIATION_MIN * Math.sqrt(variance)
}
