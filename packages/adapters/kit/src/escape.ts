/**
 * JSON in PostgreSQL holds neither U+0000 nor a lone surrogate. Both are written as an escape character with what it
 * stands for. It is a noncharacter of Unicode, which text does not contain, so that nearly all text stays as it is.
 *
 * | as given | as stored |
 * |---|---|
 * | U+0000 | U+FDD0, `0` |
 * | a lone surrogate, such as U+D800 | U+FDD0, `d800` |
 * | U+FDD0 | U+FDD0 twice |
 *
 * The work is done on JSON text, where JSON.stringify shows exactly these as `\u0000` and `\ud800`: keys are covered
 * and no nesting is too deep.
 */
const ESCAPE = '\uFDD0'
const MAY_NEED_ESCAPES = /\\u|\uFDD0/
/** Each escape of JSON as a whole, so that a backslash that is itself escaped begins none. */
const TO_ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|u|[^u])|\uFDD0/g
const ESCAPED = /\uFDD0(0|d[89a-f][0-9a-f]{2}|\uFDD0)/g

/** JSON text that can be stored: as `escapeJson`, for a text that JSON.stringify has written. */
export function escapeJsonText(text: string): string {
  if (!MAY_NEED_ESCAPES.test(text)) return text
  return text.replace(TO_ESCAPE, (whole: string, unstorable: string | undefined) => {
    if (whole === ESCAPE) return ESCAPE + ESCAPE
    if (unstorable === undefined) return whole
    return ESCAPE + (unstorable === '0000' ? '0' : unstorable)
  })
}

/** The JSON text that was given to `escapeJsonText`. */
export function unescapeJsonText(text: string): string {
  if (!text.includes(ESCAPE)) return text
  return text.replace(ESCAPED, (_whole, code: string) => {
    if (code === ESCAPE) return ESCAPE
    return `\\u${code === '0' ? '0000' : code}`
  })
}

/** The value with everything escaped that PostgreSQL cannot hold, or the value itself if there is nothing. */
export function escapeJson<T>(value: T): T {
  const text = JSON.stringify(value)
  const escaped = escapeJsonText(text)
  return escaped === text ? value : (JSON.parse(escaped) as T)
}

/** What was given to `escapeJson`. */
export function unescapeJson<T>(value: T): T {
  const text = JSON.stringify(value)
  return text.includes(ESCAPE) ? (JSON.parse(unescapeJsonText(text)) as T) : value
}
