import { AnnalsError } from './annals_error.js'

/**
 * The path of these segments, each encoded.
 * @throws AnnalsError invalid_request for an id that no URL can carry: an empty one would name another resource, and
 * `.` and `..` are resolved before a request is sent.
 */
export function pathOf(segments: string[]): string {
  return segments.map((segment) => `/${encoded(segment)}`).join('')
}

function encoded(segment: string): string {
  if (segment !== '' && segment !== '.' && segment !== '..') return encodeURIComponent(segment)
  throw new AnnalsError({
    status: 0,
    error: 'invalid_request',
    message: `"${segment}" cannot stand in the path of a URL, so nothing was sent.`,
  })
}

/** A query string. Undefined parameters are omitted, objects are sent as JSON. */
export function queryString(query: object | undefined, stringify: (value: unknown) => string): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined) continue
    parameters.set(name, typeof value === 'object' ? stringify(value) : String(value))
  }
  const text = parameters.toString()
  return text && `?${text}`
}
