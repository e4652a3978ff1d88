import { readFileSync } from 'node:fs'

/** Measures from now on for how long a process could not go on, or this one could not see it, for want of a CPU, in ms. */
export function starvation(pid: number | undefined): () => number {
  const waits = () => [cpuTimesOf(pid).waited_ms, cpuTimesOf('self').waited_ms]
  const before = waits()
  return () => Math.max(0, ...waits().map((ms, index) => ms - before[index]!))
}

/** How long the main thread of a process has had a CPU so far, and has been ready to run and waited for one, in ms. */
export interface CpuTimes {
  on_cpu_ms: number
  waited_ms: number
}

/** Zeros where the process is gone, or this is no Linux. What it waited is what a busy machine costs it, not its own doing. */
export function cpuTimesOf(pid: number | 'self' | undefined): CpuTimes {
  try {
    return readCpuTimes(readFileSync(`/proc/${pid}/schedstat`, 'utf8'))
  } catch {
    return { on_cpu_ms: 0, waited_ms: 0 }
  }
}

/** What a file called schedstat says: ns on a CPU, ns of waiting for one, and turns. */
export function readCpuTimes(text: string): CpuTimes {
  const [on_cpu = 0, waited = 0] = text.split(' ').map(Number)
  return { on_cpu_ms: on_cpu / 1e6, waited_ms: waited / 1e6 }
}
