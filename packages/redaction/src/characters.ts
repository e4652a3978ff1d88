/** What a character is to the detectors, by its code below 128. */
export const OTHER = 0
export const LETTER = 1
export const DIGIT = 2
/** `_` and `-`, which keys contain but do not begin with. */
export const JOINT = 3
export const AT = 4
export const PLUS = 5
export const PERCENT = 6

export const KINDS = new Uint8Array(128)
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code)
  if (/[A-Za-z]/.test(character)) KINDS[code] = LETTER
  else if (/\d/.test(character)) KINDS[code] = DIGIT
}
KINDS[0x5f] = JOINT
KINDS[0x2d] = JOINT
KINDS[0x40] = AT
KINDS[0x2b] = PLUS
KINDS[0x25] = PERCENT

export function kindAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code < 128 ? KINDS[code]! : OTHER
}

/** Where letters, digits and joints end that begin here. */
export function wordEnd(text: string, from: number): number {
  let at = from
  for (let code = text.charCodeAt(at); code < 128; code = text.charCodeAt(++at)) {
    const kind = KINDS[code]!
    if (kind < LETTER || kind > JOINT) break
  }
  return at
}

/** Also false before the beginning and after the end. */
export function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

/** A letter or a digit of ASCII. */
export function isAlphanumeric(text: string, at: number): boolean {
  const kind = kindAt(text, at)
  return kind === LETTER || kind === DIGIT
}

/** The letter of an escape, such as a line break, which belongs to no word. */
export function isEscape(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return (code === 0x6e || code === 0x72 || code === 0x74) && text.charCodeAt(at - 1) === 0x5c
}

export function isSpace(text: string, at: number): boolean {
  return text.charCodeAt(at) === 0x20
}
