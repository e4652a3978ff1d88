const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const PADDING = 0x3d
const NO_DIGIT = 64

/** The value of each character; both alphabets of RFC 4648 are read. */
const VALUES = new Uint8Array(128).fill(NO_DIGIT)
for (let value = 0; value < ALPHABET.length; value++) VALUES[ALPHABET.charCodeAt(value)] = value
VALUES[0x2d] = 62 // -
VALUES[0x5f] = 63 // _

/** A call can pass only so many arguments. */
const PIECE = 8_190

/** The UTF-8 of a text in base64. */
export function base64OfText(text: string): string {
  const bytes = new TextEncoder().encode(text)
  const pieces: string[] = []
  // Pieces of whole groups of three bytes, so that none but the last is padded.
  for (let from = 0; from < bytes.length; from += PIECE)
    pieces.push(btoa(String.fromCharCode(...bytes.subarray(from, from + PIECE))))
  return pieces.join('')
}

/** The text whose UTF-8 this is in base64. */
export function textOfBase64(data: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytesOfBase64(data, data.length))
}

/**
 * The bytes of base64 in either alphabet, about as many as are wanted. Reads what it can: other characters are skipped, and
 * `=` ends it.
 */
export function bytesOfBase64(data: string, bytes_max: number): Uint8Array {
  const bytes = new Uint8Array(Math.min(bytes_max, Math.ceil((data.length * 3) / 4)))
  let length = 0
  let bits = 0
  let buffer = 0
  for (let at = 0; at < data.length && length < bytes.length; at++) {
    const code = data.charCodeAt(at)
    if (code === PADDING) break
    const value = code < 128 ? VALUES[code]! : NO_DIGIT
    if (value === NO_DIGIT) continue
    buffer = ((buffer << 6) | value) & 0xfff
    bits += 6
    if (bits < 8) continue
    bits -= 8
    bytes[length++] = (buffer >> bits) & 0xff
  }
  return bytes.subarray(0, length)
}
