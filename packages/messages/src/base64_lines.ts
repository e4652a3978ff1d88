/** How base64 in a text is broken into lines: after so many characters, with such a break. */
export interface Base64Lines {
  width: number
  /** Even: a line feed. Odd: a carriage return before it. Half of it: in how many texts of JSON, one in the other, it is. */
  break: number
}

/** A break in JSON that is in JSON, and so on: more is not looked for. */
const BREAKS_KNOWN = 8
/** Ordinary words are shorter. */
export const LINE_WIDTH_MIN = 32
const LINE_WIDTH_MAX = 32 * 1024

/** A break as its text has it. In JSON, it is an escape, and each JSON around that escapes its backslashes. */
export function breakOf({ break: given }: Base64Lines): string {
  const level = given >> 1
  const escaped = (letter: string) => '\\'.repeat(2 ** (level - 1)) + letter
  const [feed, back] = level === 0 ? ['\n', '\r'] : [escaped('n'), escaped('r')]
  return given % 2 === 0 ? feed : back + feed
}

/** The breaks that are looked for, each as JSON writes it. */
export const JSON_BREAKS = Array.from({ length: BREAKS_KNOWN }, (_, given) =>
  jsonBreak({ width: 0, break: given }),
)

/** A break between the quotes of a JSON string. */
function jsonBreak(lines: Base64Lines): string {
  return JSON.stringify(breakOf(lines)).slice(1, -1)
}

/** Breaks base64 that comes in pieces, each as it stands between the quotes of a JSON string. */
export function lineBreaker(lines?: Base64Lines): (piece: string) => string {
  let column = 0
  return (piece) => {
    if (!lines) return piece
    const broken: string[] = []
    for (let at = 0; at < piece.length; ) {
      if (column === lines.width) {
        broken.push(jsonBreak(lines))
        column = 0
      }
      const part = piece.slice(at, at + lines.width - column)
      broken.push(part)
      at += part.length
      column += part.length
    }
    return broken.join('')
  }
}

/** The lines that a reference says; undefined if they cannot be. */
export function linesOf(given: unknown, width: unknown): Base64Lines | undefined {
  const found = JSON_BREAKS.findIndex((_, at) => breakOf({ width: 0, break: at }) === given)
  const isWidth =
    Number.isInteger(width) && Number(width) >= LINE_WIDTH_MIN && Number(width) <= LINE_WIDTH_MAX
  return found >= 0 && isWidth ? { width: Number(width), break: found } : undefined
}

/** How many characters all breaks of so many characters of base64 have. */
export function breaksLength(length: number, lines: Base64Lines): number {
  return Math.max(0, Math.ceil(length / lines.width) - 1) * breakOf(lines).length
}
