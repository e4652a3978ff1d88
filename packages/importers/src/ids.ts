import { writeJson } from '@annals/messages/json'
import { v5 } from 'uuid'

/** The namespace of all ids that imports and redacted copies make (RFC 9562, section 5.5). It must never change. */
const NAMESPACE = '0d9c8a52-3b1e-5f47-8c60-2a7f4e915d3b'

/** The same names always give the same id, so what was imported before is recognized. The first one is the format, or `redact`. */
export function stableId(...names: (string | number)[]): string {
  return v5(JSON.stringify(names), NAMESPACE)
}

/** A name for a value that has none in its source. */
export function digestOf(value: unknown): string {
  return v5(writeJson(value), NAMESPACE)
}
