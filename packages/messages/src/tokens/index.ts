/** A tokenizer's dictionary, as packages/server/tokens/table.js writes that of o200k_base. */
export interface TokenTable {
  /** Divides a text into pieces, across which nothing is merged. */
  pattern: RegExp
  begins: Uint32Array
  slots: Uint32Array
  bytes: Uint8Array
}

/** Merging takes quadratic time on a run without a break, and no real word is that long. */
const UNBROKEN = /\S{128}|\s{128}/g
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
  if (text.length < 128) return countUnbroken(table, text)
  let tokens = 0
  let from = 0
  for (const { index } of text.matchAll(UNBROKEN)) {
    const to = index + 128
    tokens += countUnbroken(table, text.slice(from, to))
    from = to
  }
  return tokens + countUnbroken(table, text.slice(from))
}

/** The table in a file, whose bytes it uses as they are. */
export function tokenTable(file: Uint8Array): TokenTable {
  const integers = new Uint32Array(file.buffer, file.byteOffset, file.length >> 2)
  const [tokens, slots, pattern_bytes] = integers as unknown as [number, number, number]
  const slots_at = 3 + tokens + 1
  const pattern_at = (slots_at + slots) * 4
  const bytes_at = pattern_at + pattern_bytes
  return {
    // recheck: it is given texts without long runs, see UNBROKEN.
    pattern: new RegExp(new TextDecoder().decode(file.subarray(pattern_at, bytes_at)), 'gu'),
    begins: integers.subarray(3, slots_at),
    slots: integers.subarray(slots_at, slots_at + slots),
    bytes: file.subarray(bytes_at),
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

/** Merges neighbours, those first that become the token of lowest rank, until no two become one. */
function countPiece(table: TokenTable, length: number): number {
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
  let hash = 0x811c9dc5
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ piece[at]!, 0x01000193)
  for (let slot = hash & (slots.length - 1); ; slot = (slot + 1) & (slots.length - 1)) {
    const rank = slots[slot]! - 1
    if (rank < 0) return NO_TOKEN
    const begin = begins[rank]!
    if (begins[rank + 1]! - begin !== to - from) continue
    let at = from
    while (at < to && bytes[begin + at - from] === piece[at]) at++
    if (at === to) return rank
  }
}
