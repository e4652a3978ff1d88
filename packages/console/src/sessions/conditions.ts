import { parseJson } from '@annals/messages/json'
import { ExactNumber, isObject, type Json } from '../json/exact_json.ts'

/** One condition of a filter: the value of the member at a path. */
export interface Condition {
  path: string[]
  value: Json
}

export type Filter = { [key: string]: Json }

export const VALUE_TYPES = ['text', 'number', 'true / false', 'null', 'JSON'] as const
export type ValueType = (typeof VALUE_TYPES)[number]

/** The conditions in a filter: its members, nested ones by their path. */
export function conditionsOf(filter: Filter, path: string[] = []): Condition[] {
  return Object.entries(filter).flatMap(([key, value]) =>
    isObject(value) && Object.keys(value).length > 0
      ? conditionsOf(value, [...path, key])
      : [{ path: [...path, key], value }],
  )
}

/** Where adapters and imports keep what only they read, and what every view shows anyway. */
const KEPT =
  /^(?:title|import|nonce|adk|adk_app|adk_user|ai_sdk_chat|ai_sdk_stream|claude_session|claude_summary|langgraph|openai_agents_session|pydantic_ai)$/

/** What configs say about a run: without its title, and without the state of adapters and imports. */
export function tellingConditions(configs: Filter): Condition[] {
  return conditionsOf(configs).filter(({ path: [key] }) => !KEPT.test(key!))
}

/** The filter with all conditions. Of two for one path, the later one counts. */
export function filterOf(conditions: Condition[]): Filter {
  const filter: Filter = {}
  for (const { path, value } of conditions) {
    let place = filter
    for (const key of path.slice(0, -1)) {
      const inner = Object.hasOwn(place, key) ? place[key] : undefined
      const next = isObject(inner) ? inner : {}
      Object.defineProperty(place, key, { value: next, enumerable: true, configurable: true, writable: true })
      place = next
    }
    Object.defineProperty(place, path.at(-1)!, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
  return filter
}

/** The filter with one more condition. */
export function withCondition(filter: Filter, condition: Condition): Filter {
  return filterOf([...conditionsOf(filter), condition])
}

/** The filter without the condition for a path. */
export function withoutCondition(filter: Filter, path: string[]): Filter {
  const removed = JSON.stringify(path)
  return filterOf(conditionsOf(filter).filter((condition) => JSON.stringify(condition.path) !== removed))
}

/** Whether the filter has exactly this condition. */
export function hasCondition(filter: Filter, { path, value }: Condition): boolean {
  const wanted = JSON.stringify([path, value])
  return conditionsOf(filter).some((one) => JSON.stringify([one.path, one.value]) === wanted)
}

/** The filter as it stands in an address; undefined if it filters nothing. */
export function filterText(filter: Filter): string | undefined {
  return Object.keys(filter).length > 0 ? JSON.stringify(filter) : undefined
}

/** The filter in the address; empty if it is invalid. */
export function readFilter(text: string | null): Filter {
  try {
    const value = text ? parseJson(text) : {}
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** The text of a path: its keys separated by dots; a dot in a key is escaped by a backslash. */
export function pathText(path: string[]): string {
  return path.map((key) => key.replaceAll(/[\\.]/g, '\\$&')).join('.')
}

export function readPath(text: string): string[] {
  const keys = ['']
  for (const [part] of text.matchAll(/\\.|[^\\]/gs)) {
    if (part === '.') keys.push('')
    else keys[keys.length - 1] += part.length > 1 ? part.slice(1) : part
  }
  return keys
}

export function typeOf(value: Json): ValueType {
  if (value === null) return 'null'
  if (typeof value === 'string') return 'text'
  if (typeof value === 'boolean') return 'true / false'
  return typeof value === 'number' || value instanceof ExactNumber ? 'number' : 'JSON'
}

/** The typed value. @throws Error with a sentence if it is not of this type */
export function readValue(type: ValueType, text: string): Json {
  if (type === 'text') return text
  if (type === 'null') return null
  if (type === 'true / false') return text !== 'false'
  if (type === 'number') {
    if (!/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text.trim())) throw new Error(`“${text}” is not a number.`)
    return parseJson(text.trim().replace(/^(-?)0+(?=\d)/, '$1')) as Json
  }
  try {
    return parseJson(text) as Json
  } catch {
    throw new Error('This is not JSON yet: put text in double quotes, as in ["a", "b"].')
  }
}
