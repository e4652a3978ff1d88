import { Gunzip } from 'fflate'
import { Damaged } from './pieces.js'

/** The bytes that were packed by gzip. */
export async function* gunzip(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let unpacked: Uint8Array[] = []
  const stream = new Gunzip((bytes) => unpacked.push(bytes))
  const push = (part: Uint8Array, is_last: boolean) => {
    try {
      stream.push(part, is_last)
    } catch (error) {
      return new Damaged(`the file was cut off, or is damaged (${(error as Error).message})`)
    }
    return undefined
  }
  for await (const chunk of packed) {
    for (const part of small(chunk)) {
      const damage = push(part, false)
      yield* unpacked
      unpacked = []
      if (damage) throw damage
    }
  }
  const damage = push(new Uint8Array(0), true)
  yield* unpacked
  if (damage) throw damage
}

/** The chunk in pieces, so that what each unpacks to is bounded. */
export function* small(chunk: Uint8Array, bytes = 16 * 1024): Generator<Uint8Array> {
  for (let at = 0; at < chunk.length; at += bytes) yield chunk.subarray(at, at + bytes)
}
