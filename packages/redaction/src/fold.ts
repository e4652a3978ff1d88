declare class TextDecoder {
  constructor(label: string)
  decode(codes: Uint16Array): string
}

/** A text in which each character is the plain one that it stands for, and where those came from. */
export interface Folded {
  text: string
  /** The place of each character in the original. */
  places: Uint32Array
}

/** Characters that are seen as others, or not at all. */
export const UNUSUAL =
  /[\u00a0\u00ad\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59\u180e\u2000-\u2015\u202a-\u202f\u205f-\u2064\u2066-\u2069\u2212\u3000\ufeff\uff01-\uff5e]/
/** Zeros of scripts with digits of their own; the others follow. */
const ZEROS = [0x660, 0x6f0, 0x966, 0x9e6, 0xe50]

let plain: Uint16Array | undefined

export function fold(text: string): Folded {
  plain ??= Uint16Array.from({ length: 0x10000 }, (_, code) => plainOf(code))
  const codes = new Uint16Array(text.length)
  const places = new Uint32Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = plain[text.charCodeAt(at)]!
    if (code === 0) continue
    places[length] = at
    codes[length++] = code
  }
  return { text: new TextDecoder('utf-16le').decode(codes.subarray(0, length)), places }
}

/** The code of the plain character; 0: it is not seen. */
function plainOf(code: number): number {
  const character = String.fromCharCode(code)
  if (!UNUSUAL.test(character)) return code
  if (code >= 0xff01) return code - 0xfee0
  const zero = ZEROS.find((first) => code >= first && code < first + 10)
  if (zero !== undefined) return code - zero + 0x30
  if (/\p{Zs}/u.test(character)) return 0x20
  return /[\p{Pd}\u2212]/u.test(character) ? 0x2d : 0
}
