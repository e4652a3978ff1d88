import { writeJson } from '@annals/messages/json'
import { parse, v5 } from 'uuid'

/** The namespace of all ids that imports and redacted copies make (RFC 9562, section 5.5). It must never change. */
const NAMESPACE = parse('0d9c8a52-3b1e-5f47-8c60-2a7f4e915d3b')
const UTF8 = new TextEncoder()

/** The same names always give the same id, so what was imported before is recognized. The first one is the format, or `redact`. */
export function stableId(...names: (string | number)[]): string {
  return nameOf(JSON.stringify(names))
}

/** A name for a value that has none in its source. */
export function digestOf(value: unknown): string {
  return nameOf(writeJson(value))
}

// Given bytes, the package converts nothing, which is half of its work.
function nameOf(text: string): string {
  return v5(UTF8.encode(text), NAMESPACE)
}
