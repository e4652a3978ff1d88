import { inflateSync } from 'fflate'

/** Files that stand beside one that is read, such as the pictures of an export. Nothing is read before it is asked for. */
export interface Beside {
  names(): Promise<readonly string[]>
  /** Undefined: it is not there, too large, or damaged. */
  read(name: string): Promise<Uint8Array | undefined>
}

/** Bytes of a file, from one place to another: of an archive, whose list of contents stands at its end. */
export type Slice = (from: number, to: number) => Promise<Uint8Array>

/** What a picture may have, as much as the service takes of one. */
export const PICTURE_BYTES_MAX = 20 * 1024 * 1024
/** The end of an archive: a record of 22 bytes, and a comment. */
const END_BYTES_MAX = 22 + 65_535
const LIST_BYTES_MAX = 64 * 1024 * 1024
const END = 0x06054b50
const LISTED = 0x02014b50
const HEADER_BYTES = 30
const STORED = 0
const DEFLATED = 8

interface Contained {
  method: number
  packed: number
  size: number
  offset: number
}

/** The files in an archive, by its own list. One of more than 4 GB has its list in another form, and shows none. */
export function archiveContents(size: number, slice: Slice): Beside {
  let listed: Promise<Map<string, Contained>> | undefined
  const list = () => {
    listed ??= contentsOf(size, slice)
    return listed
  }
  return {
    names: async () => [...(await list()).keys()],
    read: async (name) => {
      const found = (await list()).get(name)
      if (!found || found.size > PICTURE_BYTES_MAX || found.packed > PICTURE_BYTES_MAX) return undefined
      const header = viewOf(await slice(found.offset, found.offset + HEADER_BYTES))
      if (header.byteLength < HEADER_BYTES) return undefined
      const from = found.offset + HEADER_BYTES + header.getUint16(26, true) + header.getUint16(28, true)
      const packed = await slice(from, from + found.packed)
      if (found.method === STORED) return packed
      if (found.method !== DEFLATED) return undefined
      try {
        // What unpacks to more than is listed is cut off there.
        return inflateSync(packed, { out: new Uint8Array(found.size) })
      } catch {
        return undefined
      }
    },
  }
}

async function contentsOf(size: number, slice: Slice): Promise<Map<string, Contained>> {
  const found = new Map<string, Contained>()
  const tail = viewOf(await slice(Math.max(0, size - END_BYTES_MAX), size))
  let end = tail.byteLength - 22
  while (end >= 0 && tail.getUint32(end, true) !== END) end -= 1
  if (end < 0) return found
  const bytes = tail.getUint32(end + 12, true)
  const from = tail.getUint32(end + 16, true)
  if (from + bytes > size || bytes > LIST_BYTES_MAX) return found
  const list = viewOf(await slice(from, from + bytes))
  const decoder = new TextDecoder()
  for (let at = 0; at + 46 <= list.byteLength && list.getUint32(at, true) === LISTED; ) {
    const length = list.getUint16(at + 28, true)
    const name = new Uint8Array(
      list.buffer,
      list.byteOffset + at + 46,
      Math.min(length, list.byteLength - at - 46),
    )
    found.set(decoder.decode(name), {
      method: list.getUint16(at + 10, true),
      packed: list.getUint32(at + 20, true),
      size: list.getUint32(at + 24, true),
      offset: list.getUint32(at + 42, true),
    })
    at += 46 + length + list.getUint16(at + 30, true) + list.getUint16(at + 32, true)
  }
  return found
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
