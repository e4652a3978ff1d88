import 'pdfjs-dist/build/pdf.worker.mjs'

/*
 * The worker that reads a PDF: the library's own, which unpacks whatever it is given. 16 MB may unpack to 16 GB, in one
 * piece of work that nothing interrupts, so it gets them in pieces, and no more once they are too much. All that it unpacks
 * by itself, through whatever filters one after another, goes into buffers that the build makes it count as they grow.
 */

/** Of one PDF, as long as it is open. */
const UNPACKED_BYTES_MAX = 512 * 1024 * 1024
const PIECE_BYTES = 16 * 1024
const Unbounded = DecompressionStream
let unpacked = 0

function isTooMuch(bytes: number): boolean {
  unpacked += bytes
  if (unpacked <= UNPACKED_BYTES_MAX) return false
  postMessage({ unpacks_to_more_than: UNPACKED_BYTES_MAX })
  return true
}

Object.assign(globalThis, {
  // The library may catch it and go on elsewhere: nothing is unpacked any more, until the page ends the worker.
  countUnpacked(bytes: number) {
    if (isTooMuch(bytes)) throw new RangeError('it unpacks to too much')
  },
})

globalThis.DecompressionStream = class {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly writable: WritableStream<BufferSource>

  constructor(format: CompressionFormat) {
    const pieces = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: (bytes, controller) => {
        for (let at = 0; at < bytes.length; at += PIECE_BYTES)
          controller.enqueue(bytes.subarray(at, at + PIECE_BYTES))
      },
    })
    const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform: async (bytes, controller) => {
        if (!isTooMuch(bytes.length)) return controller.enqueue(bytes)
        // An error would make the library unpack it by itself: it waits until the page ends the worker.
        await new Promise(() => {})
      },
    })
    this.writable = pieces.writable as WritableStream<BufferSource>
    this.readable = pieces.readable.pipeThrough(new Unbounded(format)).pipeThrough(counted)
  }
}
