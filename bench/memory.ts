import { readFile } from 'node:fs/promises'

const SAMPLE_MS = 20

/** What figures say that need /proc, where it is missing. */
export const NEEDS_PROC = 'Linux only: it reads /proc'

export interface MemorySeen {
  before_mb: number
  peak_mb: number
  after_mb: number
}

/**
 * Runs `work` and watches the resident size of a process meanwhile, with the processes that it started, PostgreSQL's
 * aside. Gives undefined where there is no /proc.
 */
export async function watchMemory(
  pid: number,
  work: () => Promise<unknown>,
): Promise<MemorySeen | undefined> {
  const before_mb = await residentMegabytes(pid)
  let peak_mb = before_mb
  const sampling = setInterval(async () => {
    peak_mb = Math.max(peak_mb, await residentMegabytes(pid))
  }, SAMPLE_MS)
  try {
    await work()
  } finally {
    clearInterval(sampling)
  }
  const after_mb = await residentMegabytes(pid)
  if (process.platform !== 'linux') return undefined
  return { before_mb, peak_mb: Math.max(peak_mb, after_mb), after_mb }
}

/** The resident size of a process and of its descendants other than PostgreSQL; 0 where there is no /proc. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  if (/^Name:\s+postgres$/m.test(status)) return 0
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const sizes = await Promise.all(children.split(' ').filter(Boolean).map(Number).map(residentMegabytes))
  const own = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024
  return Math.round(sizes.reduce((a, b) => a + b, own))
}
