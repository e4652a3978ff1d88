/** A tokenizer's dictionary, as packages/server/tokens/table.js writes that of o200k_base. */
export interface TokenTable {
  /** Divides a text into pieces, across which nothing is merged. */
  pattern: RegExp
  begins: Uint32Array
  slots: Uint32Array
  bytes: Uint8Array
  counted: CountedPieces
}

/** The pieces that were counted last, each in the place that its hash gives it: most pieces come again soon. */
interface CountedPieces {
  bytes: Uint8Array
  lengths: Uint8Array
  tokens: Uint8Array
}

const COUNTED_PIECES = 4096
/** Bytes of a piece that is kept. */
const COUNTED_LENGTH_MAX = 16

/** Merging takes quadratic time on a run without a break, and no real word is that long. */
const UNBROKEN_LENGTH_MAX = 128
/**
 * Characters of a piece: a character, and a run of either kind. Only slashes and ends of lines, by turns, make longer
 * ones.
 */
const PIECE_LENGTH_MAX = 256
const PIECE_BYTES_MAX = 3 * PIECE_LENGTH_MAX
const NO_TOKEN = 0x7fffffff

const encoder = new TextEncoder()
const piece = new Uint8Array(PIECE_BYTES_MAX)
/** Where each part of a piece begins, and the rank of the token that it becomes with the next one. */
const parts = new Int32Array(PIECE_BYTES_MAX + 1)
const ranks = new Int32Array(PIECE_BYTES_MAX + 1)

/** How many tokens a text has. Long runs without a break are counted in pieces. */
export function countTokens(table: TokenTable, text: string): number {
  let tokens = 0
  let from = 0
  for (let to = endOfUnbroken(text, 0); to !== -1; to = endOfUnbroken(text, to)) {
    tokens += countUnbroken(table, text.slice(from, to))
    from = to
  }
  return tokens + countUnbroken(table, from === 0 ? text : text.slice(from))
}

/** Where the first run of only spaces, or of none, reaches its maximum length; -1: none does. */
function endOfUnbroken(text: string, from: number): number {
  // A window without a break is such a run. Otherwise the next one to look at begins after its last break, so that most
  // characters are never looked at.
  for (let begin = from; begin + UNBROKEN_LENGTH_MAX <= text.length; ) {
    let at = begin + UNBROKEN_LENGTH_MAX - 1
    const isRunOfSpaces = isSpace(text.charCodeAt(at))
    while (at > begin && isSpace(text.charCodeAt(at - 1)) === isRunOfSpaces) at--
    if (at === begin) return begin + UNBROKEN_LENGTH_MAX
    begin = at
  }
  return -1
}

/** As `\s` in a regular expression. */
function isSpace(code: number): boolean {
  if (code < 0xa0) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  return (code <= 0x3000 || code === 0xfeff) && /\s/.test(String.fromCharCode(code))
}

/** The table in a file, whose bytes it uses as they are. */
export function tokenTable(file: Uint8Array): TokenTable {
  const integers = new Uint32Array(file.buffer, file.byteOffset, file.length >> 2)
  const [tokens, slots, pattern_bytes] = integers as unknown as [number, number, number]
  const slots_at = 3 + tokens + 1
  const pattern_at = (slots_at + slots) * 4
  const bytes_at = pattern_at + pattern_bytes
  return {
    // recheck: it is given texts without long runs, see endOfUnbroken.
    pattern: new RegExp(new TextDecoder().decode(file.subarray(pattern_at, bytes_at)), 'gu'),
    begins: integers.subarray(3, slots_at),
    slots: integers.subarray(slots_at, slots_at + slots),
    bytes: file.subarray(bytes_at),
    counted: {
      bytes: new Uint8Array(COUNTED_PIECES * COUNTED_LENGTH_MAX),
      lengths: new Uint8Array(COUNTED_PIECES),
      tokens: new Uint8Array(COUNTED_PIECES),
    },
  }
}

function countUnbroken(table: TokenTable, text: string): number {
  const { pattern } = table
  let tokens = 0
  let from = 0
  pattern.lastIndex = 0
  // Every character is in a piece.
  while (pattern.test(text)) {
    const end = pattern.lastIndex
    while (from < end) {
      const to = Math.min(end, from + PIECE_LENGTH_MAX)
      tokens += countPiece(table, encodePiece(text, from, to))
      from = to
    }
  }
  return tokens
}

/** Writes a part of a text to `piece`, and returns its length in bytes. */
function encodePiece(text: string, from: number, to: number): number {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code > 0x7f) return encoder.encodeInto(text.slice(from, to), piece).written
    piece[at - from] = code
  }
  return to - from
}

function countPiece(table: TokenTable, length: number): number {
  if (length > COUNTED_LENGTH_MAX) return mergePiece(table, length)
  const { bytes, lengths, tokens } = table.counted
  const hash = hashOf(0, length)
  const place = (hash ^ (hash >>> 15)) & (COUNTED_PIECES - 1)
  const begin = place * COUNTED_LENGTH_MAX
  if (lengths[place] !== length || !isPiece(bytes, begin, 0, length)) {
    for (let at = 0; at < length; at++) bytes[begin + at] = piece[at]!
    lengths[place] = length
    tokens[place] = mergePiece(table, length)
  }
  return tokens[place]!
}

/** Merges neighbours, those first that become the token of lowest rank, until no two become one. */
function mergePiece(table: TokenTable, length: number): number {
  if (length === 1 || rankOf(table, 0, length) !== NO_TOKEN) return 1
  let count = length
  for (let at = 0; at <= length; at++) parts[at] = at
  for (let at = 0; at < length; at++) ranks[at] = rankAt(table, at, length)
  while (count > 1) {
    let lowest = 0
    for (let at = 1; at < count; at++) if (ranks[at]! < ranks[lowest]!) lowest = at
    if (ranks[lowest] === NO_TOKEN) break
    parts.copyWithin(lowest + 1, lowest + 2, count + 1)
    ranks.copyWithin(lowest + 1, lowest + 2, count)
    count -= 1
    ranks[lowest] = rankAt(table, lowest, count)
    if (lowest > 0) ranks[lowest - 1] = rankAt(table, lowest - 1, count)
  }
  return count
}

function rankAt(table: TokenTable, part: number, count: number): number {
  return part + 2 > count ? NO_TOKEN : rankOf(table, parts[part]!, parts[part + 2]!)
}

/** The rank of the token that a part of the piece is. */
function rankOf({ begins, slots, bytes }: TokenTable, from: number, to: number): number {
  for (let slot = hashOf(from, to) & (slots.length - 1); ; slot = (slot + 1) & (slots.length - 1)) {
    const rank = slots[slot]! - 1
    if (rank < 0) return NO_TOKEN
    const begin = begins[rank]!
    if (begins[rank + 1]! - begin === to - from && isPiece(bytes, begin, from, to)) return rank
  }
}

/** FNV-1a, as in the table. */
function hashOf(from: number, to: number): number {
  let hash = 0x811c9dc5
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ piece[at]!, 0x01000193)
  return hash
}

/** Whether the bytes at a place are a part of the piece. */
function isPiece(bytes: Uint8Array, begin: number, from: number, to: number): boolean {
  let at = from
  while (at < to && bytes[begin + at - from] === piece[at]) at++
  return at === to
}
