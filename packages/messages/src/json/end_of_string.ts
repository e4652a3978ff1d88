const BACKSLASH = 0x5c

/** The position after the JSON string whose opening quote is at `start`; the text's end if it is not closed. */
export function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    // A quote is escaped by an odd number of backslashes before it. Each backslash is counted for one quote only.
    let before = quote - 1
    while (before > start && text.charCodeAt(before) === BACKSLASH) before--
    if ((quote - before) % 2 === 1) return quote + 1
  }
  return text.length
}
