import 'pdfjs-dist/build/pdf.worker.min.mjs'

/*
 * The worker that reads a PDF: the library's own, which unpacks whatever it is given. 16 MB may unpack to 16 GB, in one
 * piece of work that nothing interrupts, so it gets them in pieces, and no more once they are too much.
 */

/** Of one PDF, as long as it is open. */
const UNPACKED_BYTES_MAX = 512 * 1024 * 1024
const PIECE_BYTES = 16 * 1024
const Unbounded = DecompressionStream
let unpacked = 0

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
        unpacked += bytes.length
        if (unpacked <= UNPACKED_BYTES_MAX) return controller.enqueue(bytes)
        // An error would make the library unpack it by itself: it waits until the page ends the worker.
        postMessage({ unpacks_to_more_than: UNPACKED_BYTES_MAX })
        await new Promise(() => {})
      },
    })
    this.writable = pieces.writable as WritableStream<BufferSource>
    this.readable = pieces.readable.pipeThrough(new Unbounded(format)).pipeThrough(counted)
  }
}
