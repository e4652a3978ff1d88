import { Gunzip } from 'fflate'

/** The bytes that were packed by gzip. */
export async function* gunzip(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let unpacked: Uint8Array[] = []
  const stream = new Gunzip((bytes) => unpacked.push(bytes))
  for await (const chunk of packed) {
    for (const part of small(chunk)) {
      stream.push(part)
      yield* unpacked
      unpacked = []
    }
  }
  stream.push(new Uint8Array(0), true)
  yield* unpacked
}

/** The chunk in pieces, so that what each unpacks to is bounded. */
export function* small(chunk: Uint8Array, bytes = 16 * 1024): Generator<Uint8Array> {
  for (let at = 0; at < chunk.length; at += bytes) yield chunk.subarray(at, at + bytes)
}
