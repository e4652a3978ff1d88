import { inspect, NUMBER_FRACTION_DIGITS_MAX, type Unstorable } from './find_unstorable.js'
import { JSON_DEPTH_MAX, nestsTooDeep } from './nesting.js'

/** A JSON text and its JavaScript value. The text is stored; the value is validated. */
export interface JsonText {
  text: string
  value: unknown
  /** How many characters longer the text is when PostgreSQL writes it: `1e400` becomes 401 digits. */
  expansion: number
}

export type JsonRefusal = { refused: 'not_json'; reason: string } | ({ refused: 'unstorable' } & Unstorable)

// The slow check is only needed if the text contains escapes of U+0000 or surrogates, an exponent of two digits, or a
// very long number.
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])|[eE][+-]?\d\d/
/** The byte order mark that some editors write. JSON forbids it, and naming it is clearer than "unexpected token". */
const BOM = 0xfeff

/** Reads a JSON text to be stored as jsonb, or returns why it cannot be stored. */
export function readStorable(text: string): JsonText | JsonRefusal {
  if (text.charCodeAt(0) === BOM) return { refused: 'not_json', reason: 'it begins with a byte order mark' }
  const deep = nestsTooDeep(text, JSON_DEPTH_MAX)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { refused: 'not_json', reason: (error as Error).message.replace(/\s+/g, ' ') }
  }
  if (!deep && !SUSPICIOUS.test(text) && !mayHaveLongNumber(text)) return { text, value, expansion: 0 }
  const { unstorable, expansion } = inspect(text)
  return unstorable ? { refused: 'unstorable', ...unstorable } : { text, value, expansion }
}

/**
 * Whether a number might have more digits than numeric holds. Such a number covers at least one of the sampled
 * positions and the one after it, so sampling finds it. (A pattern such as \d{16000} takes quadratic time on shorter
 * runs.)
 */
function mayHaveLongNumber(text: string): boolean {
  const step = NUMBER_FRACTION_DIGITS_MAX >> 2
  for (let at = step; at < text.length; at += step) {
    if (isDigit(text, at) && isDigit(text, at - step + 1)) return true
  }
  return false
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

export function isRefusal(result: JsonText | JsonRefusal): result is JsonRefusal {
  return 'refused' in result
}

/** Whether a parsed value is a JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
