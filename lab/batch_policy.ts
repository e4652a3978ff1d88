import { spawnSync } from 'node:child_process'

/**
 * The load generator shares the processors with what it measures. Woken by an answer, it would take the processor
 * from the service in the middle of writing the other answers, which it could not do from another machine. So it runs
 * under Linux's batch policy (sched(7)), with the same share of the processors but without preempting others. The
 * same applies to pgbench. Without chrt, nothing changes.
 */
const CHRT = ['chrt', '--batch', '0']
const hasChrt = process.platform === 'linux' && spawnSync(CHRT[0]!, [...CHRT.slice(1), 'true']).status === 0

/** The prefix of a command that makes it batch work. */
export const BATCH: readonly string[] = hasChrt ? CHRT : []

/** The options for `fork` that make its process batch work. */
export function forkedAsBatch(): { execPath?: string; execArgv?: string[] } {
  const [chrt, ...words] = BATCH
  return chrt ? { execPath: chrt, execArgv: [...words, process.execPath] } : {}
}
