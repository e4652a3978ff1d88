import { execFile } from 'node:child_process'
import { statfs } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOMY = '8g'

/** A separate disk for the database, which can be filled and freed: a tmpfs whose size changes. */
export interface SmallDisk {
  /** Leaves room for so many bytes. */
  fill(bytes_left: number): Promise<void>
  makeRoom(): Promise<void>
  unmount(): Promise<void>
}

/** Mounts one at a path; undefined where that is not allowed (it needs Linux and root). */
export async function mountSmallDisk(path: string): Promise<SmallDisk | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${ROOMY},mode=0755`, 'annals-lab', path])
  } catch {
    return undefined
  }
  const resize = (size: string) => run('mount', ['-o', `remount,size=${size}`, path])
  const fill = async (bytes_left: number, attempts = 20): Promise<void> => {
    const { blocks, bfree, bsize } = await statfs(path)
    try {
      await resize(String((blocks - bfree) * bsize + bytes_left))
    } catch (error) {
      // The database may have written in between, and a tmpfs cannot shrink below its content.
      if (attempts === 1) throw error
      await fill(bytes_left, attempts - 1)
    }
  }
  return {
    fill,
    makeRoom: async () => void (await resize(ROOMY)),
    unmount: async () => void (await run('umount', ['--lazy', path])),
  }
}
