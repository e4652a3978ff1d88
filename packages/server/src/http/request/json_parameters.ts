import { isJsonObject, isRefusal, parseJson, writeJson } from '@annals/messages/json'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { readJson } from '../../json/read_json.js'
import { OBJECT_BYTES_MAX } from '../../limits.js'
import type { TakeBody } from './taken_body.js'

/**
 * Reads a containment filter from the query string: a JSON object, as text for PostgreSQL. An empty object
 * filters nothing and counts as none.
 * @throws AnnalsError invalid_request
 */
export function parseFilter(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const value = readParameter(name, text, 'a JSON object')
  if (!isJsonObject(value)) {
    throw invalidRequest(`Query parameter ${name} must be a JSON object such as {"agent":"gpt-4o"}.`)
  }
  return Object.keys(value).length === 0 ? undefined : text
}

export function parseParameter(
  name: string,
  text: string,
  validate: (value: unknown) => { error?: AnnalsError },
): unknown {
  const value = readParameter(name, text, 'JSON')
  const { error } = validate(value)
  if (error) throw invalidRequest(`Query parameter ${name}: ${error.message}`)
  return value
}

function readParameter(name: string, text: string, what: string): unknown {
  const json = readJson(text)
  if (!isRefusal(json)) return json.value
  const reason = json.refused === 'not_json' ? json.reason : `at ${json.pointer || '/'} ${json.reason}`
  throw invalidRequest(`Query parameter ${name} must be ${what}, URL-encoded: ${reason}.`)
}

/**
 * Refuses an object of the body that exceeds the size of configs and meta. If the whole body is smaller, nothing
 * needs to be measured; otherwise the object is measured without insignificant space.
 * @throws AnnalsError payload_too_large
 */
export function checkObjectBytes(pointer: string, value: object | null | undefined, bodyText?: string): void {
  if (!value || (bodyText !== undefined && bodyText.length * 3 <= OBJECT_BYTES_MAX)) return
  // In the parsed value, long numbers are doubles; only the text has all their digits.
  const exact =
    bodyText === undefined ? value : (parseJson(bodyText) as Record<string, unknown>)[pointer.slice(1)]
  const bytes = Buffer.byteLength(writeJson(exact))
  if (bytes > OBJECT_BYTES_MAX) {
    throw new AnnalsError(
      'payload_too_large',
      `${pointer} has ${bytes} bytes; at most ${OBJECT_BYTES_MAX} are allowed.`,
    )
  }
}

const FRACTION = /\.(\d{1,6})/

/**
 * A time of a caller's (RFC 3339, of any precision) in UTC, to the microsecond: the database accepts no offset of 16 hours
 * and more. `place`: what an error calls it, such as /expires_at.
 * @throws AnnalsError invalid_request
 */
export function timeInUtc(place: string, text: string): string {
  const time = new Date(text)
  const year = time.getUTCFullYear()
  if (!(year >= 1 && year <= 9_999))
    throw invalidRequest(
      `${place} must be a time such as 2026-11-21T09:30:00Z, from the year 1 to 9999 and without a leap second.`,
    )
  const micros = (FRACTION.exec(text)?.[1] ?? '').padEnd(6, '0')
  return `${time.toISOString().slice(0, 19)}.${micros}Z`
}

/** Of a body whose only content is a `meta`, which passes through as text. */
export const checkMeta: TakeBody<{ meta: object }, void> = ({ meta }, text) =>
  checkObjectBytes('/meta', meta, text)
