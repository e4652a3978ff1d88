import { open, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { type ImportFile, PICTURE_BYTES_MAX } from '@annals/importers'

/** Parts of a folder's path that may name a session. */
const FOLDERS_MAX = 4

/** How to read a file in any order, and the files of its folder: an export's pictures. Nothing is read until it is asked for. */
export function filesAround(path: string, size: number): Pick<ImportFile, 'parts' | 'beside' | 'folder'> {
  const folder = dirname(path)
  return {
    folder: resolve(folder).split(sep).slice(-FOLDERS_MAX).join('/'),
    parts: {
      size,
      slice: async (from, to) => {
        const file = await open(path)
        try {
          const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(0, to - from)), {
            position: from,
          })
          return buffer.subarray(0, bytesRead)
        } finally {
          await file.close()
        }
      },
    },
    beside: {
      names: async () => {
        const entries = await readdir(folder, { recursive: true, withFileTypes: true })
        return entries
          .filter((entry) => entry.isFile())
          .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
      },
      read: async (name) => {
        const one = join(folder, name)
        const found = await stat(one).catch(() => undefined)
        return found && found.size <= PICTURE_BYTES_MAX ? readFile(one) : undefined
      },
    },
  }
}
