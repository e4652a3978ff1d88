declare function atob(text: string): string
declare class TextDecoder {
  constructor(label: string, options: { fatal: boolean })
  decode(bytes: Uint8Array): string
}

const LENGTH_MIN = 16
/** Characters by which a text is told from bytes. */
const BEGINNING_LENGTH = 400
const ONLY_BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
/** Characters that no text has. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f]/
const BEYOND_ASCII = /[\x80-\xff]/
const DECODER = new TextDecoder('utf-8', { fatal: true })
/** As mails have it, in lines. */
const LINES_OF_BASE64 = /^[A-Za-z0-9+/_\r\n=-]+$/
const DATA_URL = /^data:[\w.+/;=-]{0,200};base64,/

/** Where base64 that holds text begins in a string that consists of it, and that text; undefined: it does not. */
export function textInBase64(written: string): { from: number; text: string } | undefined {
  if (written.length < LENGTH_MIN) return undefined
  const text = joinedLines(written)
  const from = text.startsWith('data:') ? (DATA_URL.exec(text)?.[0].length ?? 0) : 0
  const beginning = text.slice(from, from + BEGINNING_LENGTH)
  if (!ONLY_BASE64.test(beginning)) return undefined
  const begins = decoded(beginning.slice(0, 4 * Math.floor(beginning.length / 4)))
  if (begins === undefined) return undefined
  if (beginning.length === text.length - from) return { from, text: begins }
  const whole = text.slice(from)
  const all = ONLY_BASE64.test(whole) ? decoded(whole) : undefined
  return all === undefined ? undefined : { from, text: all }
}

function joinedLines(text: string): string {
  const isInLines = text.includes('\n') && LINES_OF_BASE64.test(text.slice(0, BEGINNING_LENGTH))
  return isInLines ? text.replace(/[\r\n]+/g, '') : text
}

/** Shorter ones are signatures, hashes and ids. */
const BYTES_LENGTH_MIN = 1_500

/** Whether a string is the bytes of a file, as base64. */
export function isBytes(text: string): boolean {
  if (text.startsWith('data:')) return DATA_URL.test(text.slice(0, BEGINNING_LENGTH))
  return text.length >= BYTES_LENGTH_MIN && ONLY_BASE64.test(joinedLines(text))
}

function decoded(base64: string): string | undefined {
  try {
    const binary = atob(/[-_]/.test(base64) ? base64.replaceAll('-', '+').replaceAll('_', '/') : base64)
    // Nearly every id is told from text here, at no cost to speak of.
    if (CONTROLS.test(binary.slice(0, (BEGINNING_LENGTH * 3) / 4))) return undefined
    if (!BEYOND_ASCII.test(binary)) return binary
    const bytes = new Uint8Array(binary.length)
    for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at)
    // A character may be cut at the end of a beginning.
    const length = lengthOfText(bytes)
    if (length < bytes.length - 3) return undefined
    return DECODER.decode(bytes.subarray(0, length))
  } catch {
    return undefined
  }
}

/** How many bytes from the first on may be UTF-8. A decoder that throws costs more than all the rest of a small body. */
function lengthOfText(bytes: Uint8Array): number {
  let at = 0
  while (at < bytes.length) {
    const first = bytes[at]!
    const more =
      first < 0x80 ? 0 : first < 0xc2 ? -1 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : -1
    if (more < 0 || at + more >= bytes.length) return at
    for (let next = at + 1; next <= at + more; next++) if ((bytes[next]! & 0xc0) !== 0x80) return at
    at += more + 1
  }
  return at
}
