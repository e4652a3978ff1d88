import { spawnSync } from 'node:child_process'

/*
 * What makes the load shares the processors with what it measures. Woken by an answer, it would take the processor
 * away from the service in the middle of writing the other answers, which from another machine it could not: so it
 * runs as Linux's batch work (sched(7)), which has the same share of the processors and interrupts nobody. The same
 * holds for pgbench. Where there is no chrt, all is as it was.
 */
const CHRT = ['chrt', '--batch', '0']
const hasChrt = process.platform === 'linux' && spawnSync(CHRT[0]!, [...CHRT.slice(1), 'true']).status === 0

/** The words in front of a command that makes it batch work. */
export const BATCH: readonly string[] = hasChrt ? CHRT : []

/** The options for `fork` that make its process batch work. */
export function forkedAsBatch(): { execPath?: string; execArgv?: string[] } {
  const [chrt, ...words] = BATCH
  return chrt ? { execPath: chrt, execArgv: [...words, process.execPath] } : {}
}
