import { LINE_FEED, SPACE } from './lines.js'
import { joined, type Piece, type PieceReader, pieceOf } from './pieces.js'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
export const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
export const CLOSE_BRACE = 0x7d

const CLOSED = new TextEncoder().encode(']}')
const KEY_MAX = 200

/** Bytes of one value, as they arrive. */
class Capture {
  private parts: Uint8Array[] = []
  length = 0

  constructor(
    readonly line: number,
    private readonly bytes_max: number,
  ) {}

  add(part: Uint8Array): void {
    this.length += part.length
    if (this.length > this.bytes_max) this.parts = []
    else if (part.length > 0) this.parts.push(part.slice())
  }

  piece(end_offset: number, member?: string, closing?: Uint8Array): Piece | undefined {
    if (this.length > this.bytes_max) {
      const reason = `it has more than ${this.bytes_max} bytes`
      return {
        line: this.line,
        end_offset,
        value: undefined,
        reason,
        ...(member !== undefined && { member }),
      }
    }
    return pieceOf(joined(closing ? [...this.parts, closing] : this.parts), this.line, end_offset, member)
  }
}

/**
 * Reads JSON documents item by item: the elements of an array; of an object the elements of the arrays that `streamed`
 * names, and before the first of them and at the end what else the object has. So a document needs no more memory than its
 * largest item. Several documents may follow each other.
 */
export class DocumentReader implements PieceReader {
  private depth = 0
  private in_string = false
  private is_escaped = false
  private line = 1
  private offset = 0
  /** The value that is being read: an element or a whole document. */
  private item: Capture | undefined
  /** The document around streamed elements. */
  private around: Capture | undefined
  /** The depth at which items end. */
  private item_depth = 0
  private member: string | undefined
  private key: number[] | undefined
  private last_key = ''
  private is_value_next = false

  constructor(
    private readonly streamed: ReadonlySet<string>,
    private readonly bytes_max: number,
  ) {}

  *push(chunk: Uint8Array): Generator<Piece> {
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (byte === LINE_FEED) this.line += 1
      if (this.in_string) {
        this.inString(byte)
        continue
      }
      if (byte <= SPACE) continue
      if (!this.item && !this.around) {
        if (byte === OPEN_BRACKET && this.depth === 0) {
          this.depth = 1
          this.item_depth = 1
          continue
        }
        if (this.depth === 1 && byte === CLOSE_BRACKET) {
          this.depth = 0
          this.item_depth = 0
          continue
        }
        if (byte === COMMA) continue
        if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) {
          yield this.stray(at)
          continue
        }
        this.item = new Capture(this.line, this.bytes_max)
        from = at
      } else if (!this.item) {
        // Between elements of a streamed member.
        if (byte === COMMA) continue
        if (byte === CLOSE_BRACKET) {
          this.depth = 1
          this.item = this.around
          this.around = undefined
          this.item_depth = 0
          this.member = undefined
          from = at
          continue
        }
        if (byte === CLOSE_BRACE) {
          yield this.stray(at)
          continue
        }
        this.item = new Capture(this.line, this.bytes_max)
        from = at
      }
      const ended = this.outside(byte)
      if (ended === 'item' || ended === 'before') {
        const end = ended === 'item' ? at + 1 : at
        this.item.add(chunk.subarray(from, end))
        const piece = this.item.piece(this.offset + end, this.member)
        this.item = undefined
        if (piece) yield piece
        // The bracket that ended a number is one of the list's own.
        if (ended === 'before') at -= 1
      } else if (ended === 'member') {
        this.item.add(chunk.subarray(from, at + 1))
        const header = this.item.piece(this.offset + at + 1, undefined, CLOSED)
        this.around = this.item
        this.item = undefined
        if (header) yield { ...header, member: '' }
      }
    }
    if (this.item) this.item.add(chunk.subarray(from))
    this.offset += chunk.length
  }

  *end(): Generator<Piece> {
    const cut = this.item ?? this.around
    if (!cut && this.depth === 0) return
    yield {
      line: cut?.line ?? this.line,
      end_offset: this.offset,
      value: undefined,
      reason: 'the file was cut off within it',
    }
  }

  /** A bracket that closes nothing: what follows it is read as a document of its own. */
  private stray(at: number): Piece {
    this.depth = 0
    this.item_depth = 0
    this.around = undefined
    this.member = undefined
    return {
      line: this.line,
      end_offset: this.offset + at + 1,
      value: undefined,
      reason: 'a bracket closes nothing there',
    }
  }

  private inString(byte: number): void {
    if (this.is_escaped) this.is_escaped = false
    else if (byte === BACKSLASH) this.is_escaped = true
    else if (byte === QUOTE) {
      this.in_string = false
      if (this.key) this.last_key = String.fromCharCode(...this.key)
      this.key = undefined
    } else if (this.key && this.key.length < KEY_MAX) this.key.push(byte)
  }

  /** Takes a byte outside of strings, and says what it ends or begins. */
  private outside(byte: number): 'item' | 'before' | 'member' | undefined {
    const is_next = this.is_value_next
    this.is_value_next = false
    if (byte === QUOTE) {
      this.in_string = true
      if (this.isInDocument() && !is_next) this.key = []
    } else if (byte === COLON) this.is_value_next = this.isInDocument()
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (byte === OPEN_BRACKET && is_next && this.streamed.has(this.last_key)) {
        this.member = this.last_key
        this.depth = 2
        this.item_depth = 2
        return 'member'
      }
      this.depth += 1
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (this.depth <= this.item_depth) return 'before'
      this.depth -= 1
      if (this.depth === this.item_depth) return 'item'
    } else if (byte === COMMA && this.depth === this.item_depth) return 'before'
    return undefined
  }

  /** Whether the members of a document are being read, which may be streamed. */
  private isInDocument(): boolean {
    return this.depth === 1 && this.item_depth === 0
  }
}
