import { readFileSync } from 'node:fs'

/**
 * Measures from now on how long a process waited for a CPU, or this one could not observe it for the same reason, in
 * ms.
 */
export function starvation(pid: number | undefined): () => number {
  const waits = () => [cpuTimesOf(pid).waited_ms, cpuTimesOf('self').waited_ms]
  const before = waits()
  return () => Math.max(0, ...waits().map((ms, index) => ms - before[index]!))
}

/** How long the main thread of a process has run on a CPU so far, and has been runnable but waited for one, in ms. */
export interface CpuTimes {
  on_cpu_ms: number
  waited_ms: number
}

/** `pid`: also `self`, or a thread below it. Zeros if it is gone, or without Linux. The wait is the cost of a busy machine, not of the process. */
export function cpuTimesOf(pid: number | string | undefined): CpuTimes {
  try {
    return readCpuTimes(readFileSync(`/proc/${pid}/schedstat`, 'utf8'))
  } catch {
    return { on_cpu_ms: 0, waited_ms: 0 }
  }
}

/** The content of a schedstat file: ns on a CPU, ns waiting for one, and time slices. */
export function readCpuTimes(text: string): CpuTimes {
  const [on_cpu = 0, waited = 0] = text.split(' ').map(Number)
  return { on_cpu_ms: on_cpu / 1e6, waited_ms: waited / 1e6 }
}
