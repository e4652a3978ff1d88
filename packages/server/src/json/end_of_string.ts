const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The place behind the JSON string whose opening quote stands at `start`; the text's end where none closes it. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) return at + 1
  }
  return text.length
}
