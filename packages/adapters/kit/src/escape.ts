/**
 * JSON in PostgreSQL holds neither U+0000 nor a lone surrogate. Both are written as U+FDD0, a noncharacter that text
 * does not contain, with what it stands for: `0`, or the surrogate's number, such as `d800`. U+FDD0 itself is written
 * twice. Nearly all text stays as it is.
 *
 * The work is done on JSON text, where JSON.stringify shows exactly these as `\u0000` and `\ud800`: keys are covered
 * and no nesting is too deep.
 */
const ESCAPE = '\uFDD0'
const MAY_NEED_ESCAPES = /\\u|\uFDD0/
/** Each escape of JSON as a whole, so that a backslash that is itself escaped begins none. */
const TO_ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|u|[^u])|\uFDD0/g
const ESCAPED = /\uFDD0(0|d[89a-f][0-9a-f]{2}|\uFDD0)/g

/** Whether a value with this JSON may hold what PostgreSQL cannot. */
export function mayNeedEscapes(json: string): boolean {
  return MAY_NEED_ESCAPES.test(json)
}

/** The value with everything escaped that PostgreSQL cannot hold, or the value itself if there is nothing. */
export function escapeJson<T>(value: T): T {
  const text = JSON.stringify(value)
  if (!mayNeedEscapes(text)) return value
  const escaped = text.replace(TO_ESCAPE, (whole: string, unstorable: string | undefined) => {
    if (whole === ESCAPE) return ESCAPE + ESCAPE
    if (unstorable === undefined) return whole
    return ESCAPE + (unstorable === '0000' ? '0' : unstorable)
  })
  return escaped === text ? value : (JSON.parse(escaped) as T)
}

/** What was given to `escapeJson`. */
export function unescapeJson<T>(value: T): T {
  const text = JSON.stringify(value)
  if (!text.includes(ESCAPE)) return value
  const unescaped = text.replace(ESCAPED, (_whole, code: string) =>
    code === ESCAPE ? ESCAPE : `\\u${code === '0' ? '0000' : code}`,
  )
  return JSON.parse(unescaped) as T
}
