import type { JsonObject } from '@annals/client'
import { ExactNumber, parseJson } from '@annals/messages/json'

export type Json = null | boolean | number | string | ExactNumber | Json[] | { [key: string]: Json }
export { ExactNumber, type JsonObject }

/** Whether a value is an object with members: neither an array nor an exact number. */
export function isObject(value: unknown): value is { [key: string]: Json } {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  )
}

/** The value as one short line. */
export function shortText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof ExactNumber) return value.digits
  return JSON.stringify(value) ?? ''
}

/** The object or array that a text is, if it is one. */
export function parsedText(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return parseJson(text) as Json
  } catch {
    return undefined
  }
}

/** The object or array in a text, or the text itself. */
export function valueIn(text: string): Json {
  return parsedText(text) ?? text
}
