import { isJsonObject } from '@annals/messages/json'
import type { JsonObject } from './records.js'

/** An object without some members, and without those that say nothing. */
export function without(object: JsonObject, ...names: string[]): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([name, value]) => !names.includes(name) && value != null),
  )
}

export function objectIn(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

export function listIn(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function objectsIn(value: unknown): JsonObject[] {
  return listIn(value).filter(isJsonObject)
}

export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

export function isEmpty(object: JsonObject): boolean {
  return Object.keys(object).length === 0
}
