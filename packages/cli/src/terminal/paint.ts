/** Select Graphic Rendition: start and end codes. */
const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
} as const

export type Style = keyof typeof STYLES

/** Styles a text, if the output supports it. */
export type Paint = (style: Style, text: string) => string

/** Whether to use colour: FORCE_COLOR forces it, NO_COLOR forbids it, otherwise a capable terminal gets it. */
export function takesColour(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  const { FORCE_COLOR, NO_COLOR, TERM } = env
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false'
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false
  return stream.isTTY === true && TERM !== 'dumb'
}

/** Styles for the given output, if any. */
export function painter(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): Paint {
  if (!takesColour(stream, env)) return (_style, text) => text
  return (style, text) => {
    const [begin, end] = STYLES[style]
    return text === '' ? '' : `\u001b[${begin}m${text}\u001b[${end}m`
  }
}
