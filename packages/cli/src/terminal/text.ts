import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

const TAB = '    '
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** The columns that a text without line feeds takes on a terminal. */
export function widthOf(text: string): number {
  return stringWidth(text)
}

/** The lines of a text, none wider than `width`. */
export function linesOf(text: string, width: number): string[] {
  return text
    .replaceAll('\t', TAB)
    .split('\n')
    .flatMap((line) =>
      widthOf(line) <= width
        ? [line]
        : wrapAnsi(line, width, { hard: true, trim: false }).split('\n').map(withoutGap),
    )
    .map((line) => line.trimEnd())
}

/** A continued line does not start with the space at which it was broken. */
function withoutGap(line: string, index: number): string {
  return index > 0 && line.startsWith(' ') ? line.slice(1) : line
}

/** The text, shortened to `width` columns at most, with an ellipsis for the rest. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let cut = ''
  let taken = 0
  for (const { segment } of graphemes.segment(text)) {
    taken += widthOf(segment)
    if (taken > width - 1) break
    cut += segment
  }
  return `${cut}…`
}

/** The text, padded with spaces to `width` columns. */
export function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)))
}
