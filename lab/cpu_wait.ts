import { readFileSync } from 'node:fs'

/** Measures from now on for how long a process could not go on, or this one could not see it, for want of a CPU, in ms. */
export function starvation(pid: number | undefined): () => number {
  const waits = () => [cpuWaitOf(pid), cpuWaitOf('self')]
  const before = waits()
  return () => Math.max(0, ...waits().map((ms, index) => ms - before[index]!))
}

/**
 * How long a process has been ready to run and has waited for a CPU so far, in ms: what a busy machine costs it, and not
 * what it does itself. 0 where it is down, or this is no Linux.
 */
export function cpuWaitOf(pid: number | 'self' | undefined): number {
  try {
    // ns on a CPU, ns of waiting for one, and turns: of the main thread.
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
