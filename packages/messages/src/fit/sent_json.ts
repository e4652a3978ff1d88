import type { JsonObject } from '../blob_reading.js'
import { ExactNumber, writeJson } from '../json/exact_json.js'

/** Half of a character, as `JSON.stringify` writes it: any other character of these stands as it is. */
const HALF_A_CHARACTER = /((?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g
/** A number that may be greater than any double. */
const LONG_NUMBER = /[:,[]-?(?:\d{309}|\d[\d.]*[eE]\+?\d{3})/

/**
 * An item as JSON that every provider reads: half a character becomes U+FFFD, and a number that no double holds its digits
 * as a text. Arguments of a call may have both, because they were stored as a text.
 */
export function sentJson(item: JsonObject): string {
  const text = writeJson(item)
  const finite = LONG_NUMBER.test(text) ? JSON.stringify(item, finiteOnly) : text
  if (!finite.includes('\\ud')) return finite
  // Twice: of two halves in a row, the first time finds every other one.
  return finite.replace(HALF_A_CHARACTER, '$1\uFFFD').replace(HALF_A_CHARACTER, '$1\uFFFD')
}

function finiteOnly(this: Record<string, unknown>, key: string, value: unknown): unknown {
  const given = this[key]
  return given instanceof ExactNumber && !Number.isFinite(Number(given.digits)) ? given.digits : value
}
