import { joined, type Piece, type PieceReader, pieceOf, textPieceOf } from './pieces.js'

export const LINE_FEED = 0x0a
/** No byte up to this one is of a word, or begins a value. */
export const SPACE = 0x20

/** Reads JSON lines. A line that is too long is refused without being held. */
export class LineReader implements PieceReader {
  private parts: Uint8Array[] = []
  private length = 0
  private line = 0
  private offset = 0

  /** `is_text`: a line is a text, and not JSON. */
  constructor(
    private readonly bytes_max: number,
    private readonly is_text = false,
  ) {}

  *push(chunk: Uint8Array): Generator<Piece> {
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      this.keep(chunk.subarray(from, at))
      this.offset += 1
      from = at + 1
      yield* this.finish()
    }
    // A chunk may be a buffer that is used again.
    this.keep(chunk.slice(from))
  }

  *end(): Generator<Piece> {
    for (const piece of this.finish())
      yield piece.reason === 'it is not JSON'
        ? { ...piece, reason: 'it is not JSON: the file may have been cut off' }
        : piece
  }

  private keep(part: Uint8Array): void {
    this.offset += part.length
    this.length += part.length
    if (this.length > this.bytes_max) this.parts = []
    else if (part.length > 0) this.parts.push(part)
  }

  private *finish(): Generator<Piece> {
    const { parts, length } = this
    this.line += 1
    this.parts = []
    this.length = 0
    if (length > this.bytes_max) {
      const reason = `it has ${length} bytes, more than ${this.bytes_max}`
      yield { line: this.line, end_offset: this.offset, value: undefined, reason }
      return
    }
    const bytes = joined(parts)
    const piece = this.is_text
      ? textPieceOf(bytes, this.line, this.offset)
      : pieceOf(bytes, this.line, this.offset)
    if (piece) yield piece
  }
}
