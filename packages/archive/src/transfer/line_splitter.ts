import { StartError } from '@annals/kits/errors.js'

/**
 * Most bytes of one line. jsonb itself holds at most 256 MB, so nothing that was ever stored is refused, but a file
 * without line feeds is, before it fills the memory.
 */
export const LINE_BYTES_MAX = 256 * 1024 * 1024
const LINE_FEED = 0x0a

export class LineSplitter {
  private pieces: Buffer[] = []
  private pieceBytes = 0
  private lines = 0

  /** The lines that the chunk completes. */
  push(chunk: Buffer): Buffer[] {
    const complete: Buffer[] = []
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      complete.push(this.finish(chunk.subarray(from, at)))
      from = at + 1
    }
    this.keep(chunk.subarray(from))
    return complete
  }

  rest(): Buffer {
    return this.finish(Buffer.alloc(0))
  }

  private finish(end: Buffer): Buffer {
    this.keep(end)
    const line = this.pieces.length === 1 ? this.pieces[0]! : Buffer.concat(this.pieces, this.pieceBytes)
    this.pieces = []
    this.pieceBytes = 0
    this.lines += 1
    return line
  }

  private keep(piece: Buffer): void {
    if (piece.length === 0) return
    this.pieceBytes += piece.length
    if (this.pieceBytes > LINE_BYTES_MAX) {
      throw new StartError(`Line ${this.lines + 1} is longer than ${LINE_BYTES_MAX} bytes.`)
    }
    this.pieces.push(piece)
  }
}
