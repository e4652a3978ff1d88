import { isUtf8 } from 'node:buffer'
import { JSON_DEPTH_MAX, nestsTooDeep } from '@annals/messages/json'
import { NUMBER_FRACTION_DIGITS_MAX } from '../limits.js'
import { inspect, type Unstorable } from './find_unstorable.js'

/** A JSON text and what JavaScript makes of it. The text is what is stored; the value is what is checked. */
export interface JsonText {
  text: string
  value: unknown
  /** Characters that the text has more when PostgreSQL writes it: `1e400` becomes 401 digits. */
  expansion: number
}

export type JsonRefusal = { refused: 'not_json'; reason: string } | ({ refused: 'unstorable' } & Unstorable)

// What a JSON text must contain for the slow look to be worth while: the escapes of U+0000 and surrogates, an
// exponent of two digits, or a very long number.
const SUSPICIOUS = /\\u(?:0000|[dD][89a-fA-F])|[eE][+-]?\d\d/
/** The byte order mark that some editors put in front. JSON forbids it; saying so beats "unexpected token". */
const BOM = 0xfeff

/** Reads a JSON text that shall be stored as jsonb, or says why it cannot be. */
export function readJson(source: Buffer | string): JsonText | JsonRefusal {
  if (typeof source !== 'string' && !isUtf8(source))
    return { refused: 'not_json', reason: 'it is not valid UTF-8' }
  const text = typeof source === 'string' ? source : source.toString('utf8')
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
 * Whether a number might have more digits than numeric holds. A number so long covers one of the places looked at
 * here and the one behind it, so a look at every so-manieth character finds it. (A pattern such as \d{16000}
 * takes quadratic time on shorter runs of digits.)
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
