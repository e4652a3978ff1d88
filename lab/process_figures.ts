import { readdirSync, readFileSync } from 'node:fs'
import { cpuTimesOf } from './cpu_wait.ts'

/** The resident size of a process in MB; 0 if it is gone, or without Linux. */
export function residentMegabytes(pid: number | undefined): number {
  try {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Math.round(Number(kilobytes ?? 0) / 1024)
  } catch {
    return 0
  }
}

/** Files and sockets that a process has open; 0 if it is gone, or without Linux. */
export function openFiles(pid: number | undefined): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}

/** Whether a process exists and is not a zombie. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** How long all threads of a process have run on a processor so far, in ms; 0 if it is gone, or without Linux. */
export function processorMilliseconds(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.reduce((sum, id) => sum + cpuTimesOf(`${pid}/task/${id}`).on_cpu_ms, 0)
  } catch {
    return 0
  }
}
