import { readdirSync, readFileSync } from 'node:fs'

/** The resident size of a process in MB; 0 when it is gone, or this is no Linux. */
export function residentMegabytes(pid: number | undefined): number {
  try {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Math.round(Number(kilobytes ?? 0) / 1024)
  } catch {
    return 0
  }
}

/** Files and sockets that a process has open; 0 when it is gone, or this is no Linux. */
export function openFiles(pid: number | undefined): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return 0
  }
}

/** Whether a process is there, and is no mere entry that its parent has yet to collect. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
