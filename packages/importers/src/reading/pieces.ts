import { parseJson } from '@annals/messages/json'

/** A line of lines, or an item of a document. */
export interface Piece {
  /** On which line it begins, from 1. */
  line: number
  /** How much of the source was read with it. */
  end_offset: number
  /** The parsed JSON; undefined if `reason` says why it is none. */
  value: unknown
  reason?: string
  /** The member of the document whose array the item is in; undefined for a whole value, or for the rest of the document. */
  member?: string
}

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** The piece that some bytes are. */
export function pieceOf(
  bytes: Uint8Array,
  line: number,
  end_offset: number,
  member?: string,
): Piece | undefined {
  const piece: Piece = { line, end_offset, value: undefined }
  if (member !== undefined) piece.member = member
  let text: string
  try {
    text = DECODER.decode(bytes)
  } catch {
    return { ...piece, reason: 'it is not UTF-8' }
  }
  // A file that was not closed may end in zeros, and whoever goes on with it writes behind them.
  if (text.startsWith('\0')) text = text.replace(/^\0+/, '')
  if (text.trim() === '') return undefined
  try {
    return { ...piece, value: readJson(text) }
  } catch (error) {
    return { ...piece, reason: error instanceof RangeError ? `it is ${error.message}` : 'it is not JSON' }
  }
}

/** A line of a text. */
export function textPieceOf(bytes: Uint8Array, line: number, end_offset: number): Piece {
  try {
    return { line, end_offset, value: DECODER.decode(bytes) }
  } catch {
    return { line, end_offset, value: undefined, reason: 'it is not UTF-8' }
  }
}

/**
 * Reads JSON, also as Python writes it, whose `NaN` and `Infinity` become texts, and with commas before closing brackets.
 * @throws SyntaxError, RangeError
 */
export function readJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    const mended = error instanceof SyntaxError ? mendedJson(text) : text
    if (mended === text) throw error
    return parseJson(mended)
  }
}

const SPACES = new Set([' ', '\t', '\n', '\r'])
const NO_NUMBERS = ['NaN', 'Infinity', '-Infinity']

function mendedJson(text: string): string {
  let written = ''
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (char === '"') {
      for (at += 1; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at += 1
      continue
    }
    if (char === ',') {
      let next = at + 1
      while (SPACES.has(text[next]!)) next += 1
      if (text[next] === '}' || text[next] === ']') {
        written += text.slice(from, at)
        from = next
      }
      at = next - 1
      continue
    }
    const word = 'NI-'.includes(char) ? NO_NUMBERS.find((one) => text.startsWith(one, at)) : undefined
    if (word === undefined) continue
    written += `${text.slice(from, at)}"${word}"`
    from = at + word.length
    at = from - 1
  }
  return written + text.slice(from)
}

/** A file ends or breaks within what packs it. What came before counts. */
export class Damaged extends Error {
  override readonly name = 'Damaged'
}

/** Pieces of bytes as one. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Cuts what is read into pieces. */
export interface PieceReader {
  push(chunk: Uint8Array): Iterable<Piece>
  end(): Iterable<Piece>
}
