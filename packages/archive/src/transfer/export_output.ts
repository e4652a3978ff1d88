import { randomUUID } from 'node:crypto'
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { StartError } from '@annals/kits/errors.js'
import { visibleJson } from '@annals/messages/json'

export interface ExportOutput {
  /** Resolves when more may be written. */
  write(bytes: Buffer): Promise<void>
  finish(): Promise<void>
  /** The export failed: deletes what was written, if possible. */
  abandon(): Promise<void>
}

/** The reader of a pipe has closed it, as `head` does. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/**
 * Writes to a stream such as stdout, never faster than it is read. A terminal would interpret characters that somebody
 * stored, so it gets them as JSON's escapes. @throws OutputClosed
 */
export function streamOutput(stream: NodeJS.WritableStream & { isTTY?: boolean }): ExportOutput {
  const decoder = new StringDecoder('utf8')
  const shown = (bytes: Buffer) => (stream.isTTY ? visibleJson(decoder.write(bytes)) : bytes)
  // Without a listener a closed pipe would be an uncaught exception; write's own callback reports it.
  stream.on('error', () => {})
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stream.write(shown(bytes), (error) => {
          if (!error) resolve()
          else reject((error as NodeJS.ErrnoException).code === 'EPIPE' ? new OutputClosed() : error)
        })
      }),
    finish: async () => {},
    abandon: async () => {},
  }
}

/**
 * Writes to a temporary file and renames it at the end, so that nobody takes half an export for a complete one, and
 * an earlier export stays until the new one is complete. Anything but a regular file (a device, a named pipe) is
 * written to directly. @throws StartError if it cannot be written
 */
export async function fileOutput(path: string): Promise<ExportOutput> {
  const existing = await stat(path).catch(() => undefined)
  if (existing && !existing.isFile()) {
    const file = await openFile(path, 'w', path)
    return { write: writer(file, path), finish: () => file.close(), abandon: () => file.close() }
  }
  // A link stays a link: its target is replaced.
  const target = existing ? await realpath(path) : path
  // In a container, the next process has the id of one that was killed.
  const partial = `${target}.${randomUUID()}.partial`
  const file = await openFile(partial, 'wx', path)
  return {
    write: writer(file, path),
    finish: async () => {
      try {
        await file.sync()
        await file.close()
        await rename(partial, target)
      } catch (error) {
        throw cannotWrite(path, error)
      }
    },
    abandon: async () => {
      await file.close()
      await rm(partial, { force: true })
    },
  }
}

async function openFile(name: string, flags: string, path: string): Promise<FileHandle> {
  try {
    // Stored data is only for the file's owner.
    return await open(name, flags, 0o600)
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

function writer(file: FileHandle, path: string): (bytes: Buffer) => Promise<void> {
  return async (bytes) => {
    try {
      for (let from = 0; from < bytes.length; ) from += (await file.write(bytes, from)).bytesWritten
    } catch (error) {
      throw cannotWrite(path, error)
    }
  }
}

/** Why a file cannot be written, for people. */
export function cannotWrite(path: string, error: unknown): StartError {
  return new StartError(`${path} cannot be written (${(error as Error).message}).`, { cause: error })
}
