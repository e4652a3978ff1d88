import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { AnnalsServer } from './annals_process.ts'

const run = promisify(execFile)
const EVERY_MS = 100

/** Watches the resident memory of a node's process while `work` is under way; gives the highest, in megabytes. */
export async function peakMegabytes(node: AnnalsServer, work: () => Promise<void>): Promise<number> {
  let peak = 0
  let isOver = false
  const watch = async () => {
    while (!isOver) {
      const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(node.pid)])
      peak = Math.max(peak, Number(stdout) / 1024)
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
    }
  }
  const watching = watch()
  try {
    await work()
  } finally {
    isOver = true
    await watching
  }
  return peak
}
