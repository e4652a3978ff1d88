import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Config } from '@annals/kits/configuration/config.js'
import { StartError } from '@annals/kits/errors.js'
import { postJson } from '@annals/kits/outgoing/post_json.js'
import { objectStoreOf } from '@annals/kits/outgoing/s3_store.js'
import { type Anchor, after, type Before, FIRST, hashOf, readAnchors } from './anchor.js'

export interface Destination {
  /** Its name in the database, without secrets: two destinations have two names. */
  name: string
  /** Sends a line, and returns when it is there to stay. Sending it again changes nothing. @throws Error */
  send(line: string, anchor: Anchor, signal: AbortSignal): Promise<void>
  /** The last anchor that it has, where it can be read. */
  last?(): Promise<Before>
  /** The same after all of them were checked. @throws StartError */
  checkedLast?(): Promise<Before>
}

/** A line has at most 1,000 leaves. */
const TAIL_BYTES_MAX = 512 * 1024

/** @param target a file, `s3://bucket/prefix`, or the URL of a webhook */
export function destinationOf(target: string, config: Config): Destination {
  if (target.startsWith('s3://')) return bucket(target, config)
  return /^https?:\/\//.test(target) ? webhook(target) : anchorFile(resolve(target))
}

function anchorFile(path: string): Destination {
  return {
    name: `file:${path}`,
    last: async () => (await lastLine(path)).before,
    checkedLast: async () => {
      const { anchors, wrong } = await readAnchors(path)
      if (wrong.length > 0)
        throw new StartError(`Anchor ${wrong[0]!.nth} of ${path} has been changed: ${wrong[0]!.reason}.`)
      return anchors.length > 0 ? after(anchors.at(-1)!) : FIRST
    },
    send: async (line, anchor) => {
      const { before, length } = await lastLine(path)
      if (before.nth === anchor.nth && before.previous === after(anchor).previous) return
      if (before.nth !== anchor.nth - 1 || before.previous !== anchor.previous)
        throw new Error(`${path} was changed meanwhile`)
      const file = await open(path, 'a', 0o644)
      try {
        // A process may have died while it wrote the line.
        await file.truncate(length)
        await file.writeFile(`${line}\n`)
        await file.sync()
      } finally {
        await file.close()
      }
    },
  }
}

/** The last whole line of an anchor file, and the bytes until its end. */
async function lastLine(path: string): Promise<{ before: Before; length: number }> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return { before: FIRST, length: 0 }
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - 2 * TAIL_BYTES_MAX)
    const tail = Buffer.alloc(size - from)
    await file.read(tail, 0, tail.length, from)
    const end = tail.lastIndexOf(0x0a)
    const length = from + end + 1
    if (end <= 0) return { before: FIRST, length }
    const line = tail.toString('utf8', tail.lastIndexOf(0x0a, end - 1) + 1, end)
    return { before: after(JSON.parse(line) as Anchor), length }
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new StartError(`The last line of ${path} is not an anchor. Restore it from a copy.`)
    throw error
  } finally {
    await file.close()
  }
}

/** An object for each anchor, whose name has its number and hash: none ever takes the place of another one. */
function bucket(target: string, config: Config): Destination {
  const { hostname, pathname } = new URL(target)
  const store = objectStoreOf({ ...config, s3_bucket: hostname })!
  const prefix = pathname.split('/').filter(Boolean).join('/') || 'anchors'
  return {
    name: `s3://${hostname}/${prefix}`,
    send: async (line, anchor) => {
      const bytes = Buffer.from(`${line}\n`)
      const name = `${String(anchor.nth).padStart(12, '0')}-${after(anchor).previous.slice(0, 16)}.ndjson`
      await store.put(`${prefix}/${name}`, piece(bytes), bytes.length, hashOf(bytes).toString('hex'))
    },
  }
}

async function* piece(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

function webhook(target: string): Destination {
  const url = new URL(target)
  // Of what may be secret in it, the name has a hash.
  const rest = hashOf(target).toString('hex').slice(0, 12)
  return {
    name: `${url.origin}/… (${rest})`,
    send: (line, _anchor, signal) => {
      const headers = { 'content-type': 'application/x-ndjson' }
      return postJson({ url: target, headers, body: `${line}\n`, to_private: true, signal })
    },
  }
}
