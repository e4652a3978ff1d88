import type { JsonObject } from '@annals/client'

/** A number of more digits than JavaScript keeps. Shown as it was written, and written as it was read. */
export class ExactNumber {
  constructor(readonly source: string) {}

  toJSON(): unknown {
    const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown }
    return rawJSON ? rawJSON(this.source) : Number(this.source)
  }
}

export type Json = null | boolean | number | string | ExactNumber | Json[] | { [key: string]: Json }
export type { JsonObject }

const DIGITS_KEPT = 15

/** JSON.parse that keeps every digit. Where a browser does not tell a number's text, it is JSON.parse. */
export function parseExactly(text: string): unknown {
  // Most answers have no such number, and a reviver is slow.
  if (!/\d{16}|\.\d{15}/.test(text)) return JSON.parse(text)
  return JSON.parse(text, function keep(_key, value: unknown, context?: { source?: string }) {
    if (typeof value !== 'number' || context?.source === undefined) return value
    const digits = context.source.split(/e/i, 1)[0]!.replace(/^-?0*\.?0*|\D/g, '')
    return digits.length > DIGITS_KEPT ? new ExactNumber(context.source) : value
  } as (key: string, value: unknown) => unknown)
}

/** Whether a value is an object with members, so neither an array nor a number of many digits. */
export function isObject(value: unknown): value is { [key: string]: Json } {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  )
}

/** The value as one short line. */
export function shortText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof ExactNumber) return value.source
  return JSON.stringify(value) ?? ''
}

/** The object or array that a text is, if it is one. */
export function parsedText(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return parseExactly(text) as Json
  } catch {
    return undefined
  }
}
