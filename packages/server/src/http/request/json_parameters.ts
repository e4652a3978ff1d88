import { isJsonObject, isRefusal, parseJson, writeJson } from '@annals/messages/json'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { readJson } from '../../json/read_json.js'
import { OBJECT_BYTES_MAX } from '../../limits.js'

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

/** Reads a value of a schema from the query string. @throws AnnalsError invalid_request */
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
