import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import nodePath, { basename, join } from 'node:path'
import { StartError } from '@annals/kits/errors.js'

const READ_BYTES = 64 * 1024
const READ =
  /\.(?:jsonl?|ndjson|traj|eval|zip|gz)$|(?:^|[/\\])(?:\.aider\.chat\.history|cursor_[^/\\]+|[a-z_]{2,40}_task_[^/\\]+|\d{4}-\d\d-\d\d_\d\d-\d\d(?:-\d\d)?Z[^/\\]*)\.md$/i

/** A file to read: its path, as it is told, and how to read it. */
export interface Source {
  name: string
  size: number
  changed_ms: number
  /** Throws, or fails later, where it cannot be read. */
  open(): AsyncIterable<Uint8Array>
  /** Where it is; undefined for stdin. */
  path?: string
}

export function stdinSource(input: AsyncIterable<Uint8Array>): Source {
  return { name: 'stdin', size: 0, changed_ms: 0, open: () => input }
}

export async function isFolder(path: string): Promise<boolean> {
  return (await describe(path)).isDirectory()
}

/** @throws StartError if it is not there */
async function describe(path: string) {
  try {
    return await stat(path)
  } catch (error) {
    throw new StartError(`${path} cannot be read (${(error as Error).message}).`, { cause: error })
  }
}

/** A file's path below a folder, the same on every platform, because sessions keep it. */
export function nameBelow(folder: string, file: string, { relative, sep } = nodePath): string {
  return relative(folder, file).replaceAll(sep, '/')
}

/** Why a file or folder cannot be read. Undefined for any other error. */
export function whyUnreadable(error: unknown): string | undefined {
  const { code, syscall, message } = error as NodeJS.ErrnoException
  return code !== undefined && syscall !== undefined && !NETWORK.has(syscall)
    ? `cannot be read (${message})`
    : undefined
}

const NETWORK = new Set(['connect', 'getaddrinfo'])

/** The files of a folder that may be transcripts and have changed since, or one file. */
export async function sourcesIn(path: string, since: string | undefined): Promise<Source[]> {
  const found = await describe(path)
  if (!found.isDirectory()) return [sourceOf(path, basename(path), found)]
  const since_ms = since === undefined ? 0 : Date.parse(since)
  const sources: Source[] = []
  for await (const one of below(path, path))
    if (one.changed_ms >= since_ms || one.path === undefined) sources.push(one)
  return sources.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** Files below a folder, also those to which links lead. What cannot be read fails once it is opened. */
async function* below(top: string, folder: string): AsyncGenerator<Source> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => error)
  if (!Array.isArray(entries)) {
    yield unreadable(nameBelow(top, folder), entries)
    return
  }
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* below(top, path)
    else if (READ.test(entry.name) && (entry.isFile() || entry.isSymbolicLink())) {
      // It may be gone by now, or a link that leads nowhere.
      const found = await stat(path).catch(() => undefined)
      if (found?.isFile()) yield sourceOf(path, nameBelow(top, path), found)
    }
  }
}

function sourceOf(path: string, name: string, { size, mtimeMs }: { size: number; mtimeMs: number }): Source {
  const open = () => createReadStream(path, { highWaterMark: READ_BYTES })
  return { name, size, changed_ms: mtimeMs, open, path }
}

function unreadable(name: string, error: unknown): Source {
  const open = () => {
    throw error
  }
  return { name, size: 0, changed_ms: 0, open }
}
