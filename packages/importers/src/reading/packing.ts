import { gunzip } from './gunzip.js'

/** How a file is written, by its first bytes: what may be unpacked, and what has to be by somebody else. */
export type Packing =
  | 'zip'
  | { bytes(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> }
  | Foreign

interface Foreign {
  foreign: string
}

/** Files that are no text, and by what they begin. */
const FOREIGN: readonly [name: string, start: readonly number[]][] = [
  ['packed by zstd: unpack it first', [0x28, 0xb5, 0x2f, 0xfd]],
  ['packed by xz: unpack it first', [0xfd, 0x37, 0x7a, 0x58]],
  ['packed by bzip2: unpack it first', [0x42, 0x5a, 0x68]],
  ['packed by 7-Zip: unpack it first', [0x37, 0x7a, 0xbc, 0xaf]],
  ['a Parquet file: write it as JSON lines first', [0x50, 0x41, 0x52, 0x31]],
  ['a SQLite database: export its sessions as JSON first', [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20]],
]

const BRACE = 0x7b
const BRACKET = 0x5b

export function packingOf(bytes: Uint8Array): Packing | undefined {
  const begins = (...start: number[]) => start.every((byte, at) => bytes[at] === byte)
  if (begins(0x50, 0x4b)) return 'zip'
  if (begins(0x1f, 0x8b)) return { bytes: gunzip }
  if (begins(0xef, 0xbb, 0xbf)) return { bytes: withoutMark }
  // PowerShell writes UTF-16 where a program's output is sent to a file.
  if (begins(0xff, 0xfe) || begins(BRACE, 0) || begins(BRACKET, 0)) return { bytes: decoded('utf-16le') }
  if (begins(0xfe, 0xff) || begins(0, BRACE) || begins(0, BRACKET)) return { bytes: decoded('utf-16be') }
  const [foreign] = FOREIGN.find(([, start]) => begins(...start)) ?? []
  return foreign === undefined ? undefined : { foreign }
}

/** The bytes after the byte order mark of UTF-8. */
async function* withoutMark(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let left = 3
  for await (const chunk of bytes) {
    if (chunk.length > left) yield chunk.subarray(left)
    left = Math.max(0, left - chunk.length)
  }
}

function decoded(encoding: string) {
  return async function* utf8(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const decoder = new TextDecoder(encoding)
    const encoder = new TextEncoder()
    for await (const chunk of bytes) yield encoder.encode(decoder.decode(chunk, { stream: true }))
    yield encoder.encode(decoder.decode())
  }
}
