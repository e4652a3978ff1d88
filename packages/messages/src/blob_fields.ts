import { ExactNumber } from './json/exact_json.js'

/** A JSON object. */
export type JsonObject = Record<string, unknown>

/** A blob that is not a message of its format. */
export class InvalidMessage extends Error {
  override readonly name = 'InvalidMessage'

  /**
   * @param pointer JSON pointer into the blob to the field at fault, such as `/content/0/text`; '' is the blob
   * @param reason what the field must be, to follow the pointer in a sentence
   */
  constructor(
    readonly pointer: string,
    readonly reason: string,
  ) {
    super(`${pointer === '' ? 'the message' : pointer} ${reason}`)
  }
}

export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
  )
}

/** The value, which must be an object; `at` is its pointer. */
export function asObject(value: unknown, at: string): JsonObject {
  if (!isObject(value)) throw new InvalidMessage(at, `${missing(value)}must be an object`)
  return value
}

export function objectAt(parent: JsonObject, key: string, at: string): JsonObject {
  return asObject(parent[key], `${at}/${key}`)
}

export function textAt(parent: JsonObject, key: string, at: string): string {
  const value = parent[key]
  if (typeof value !== 'string') {
    throw new InvalidMessage(`${at}/${key}`, `${missing(value)}must be a string`)
  }
  return value
}

// SDKs in languages without `undefined` write null for what is absent, so null counts as absent everywhere.

export function optionalObjectAt(parent: JsonObject, key: string, at: string): JsonObject | undefined {
  return parent[key] == null ? undefined : objectAt(parent, key, at)
}

export function optionalTextAt(parent: JsonObject, key: string, at: string): string | undefined {
  return parent[key] == null ? undefined : textAt(parent, key, at)
}

export function optionalBooleanAt(parent: JsonObject, key: string, at: string): boolean | undefined {
  const value = parent[key]
  if (value == null) return undefined
  if (typeof value !== 'boolean') throw new InvalidMessage(`${at}/${key}`, 'must be true or false')
  return value
}

export function optionalArrayAt(parent: JsonObject, key: string, at: string): unknown[] | undefined {
  const value = parent[key]
  if (value == null) return undefined
  if (!Array.isArray(value)) throw new InvalidMessage(`${at}/${key}`, 'must be an array')
  return value
}

/** The message's `role`, which must be one of `roles`. */
export function roleAt<Role extends string>(blob: JsonObject, roles: readonly Role[], at = ''): Role {
  const role = blob.role
  if (typeof role === 'string' && (roles as readonly string[]).includes(role)) return role as Role
  throw new InvalidMessage(`${at}/role`, `${missing(role)}must be one of ${roles.join(', ')}`)
}

function missing(value: unknown): string {
  return value === undefined ? 'is required and ' : ''
}
