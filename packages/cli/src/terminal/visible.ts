/**
 * Stored text is untrusted, and terminals interpret some of it: escape sequences move the cursor, change the title or
 * paste; directional marks make text look different from what it is; tag characters are invisible.
 */
const OBEYED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu

/** A text that a terminal shows without interpreting it: such characters become escapes. Line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(OBEYED, escapeOf)
}

/** The same for a text that must stay on one line. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

/** The same for a JSON text, whose value does not change: inside strings, an escape means the same character. */
export function visibleJson(json: string): string {
  return json.replace(OBEYED, (character) =>
    Array.from({ length: character.length }, (_, index) => escapeOf(character[index]!)).join(''),
  )
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0)!
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
}
