import { DECEIVING, visibleJson } from '@annals/messages/json'

/*
 * Stored text is untrusted, and terminals interpret some of it: escape sequences move the cursor, change the title or
 * paste.
 */

export { visibleJson }

/** A text that a terminal shows without interpreting it: such characters become escapes. Line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(DECEIVING, escapeOf)
}

/** The same for a text that must stay on one line. */
export function visibleLine(text: string): string {
  return visible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}

function escapeOf(character: string): string {
  const code = character.codePointAt(0)!
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
}
