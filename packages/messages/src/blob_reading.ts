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

/** Appends all of `from`: spread, a caller's list may be more arguments than a function takes. */
export function pushAll<T>(to: T[], from: Iterable<T>): void {
  for (const one of from) to.push(one)
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

/**
 * Tool-call ids for formats without them. Gemini's `functionCall.id` is optional, and OpenAI's old `function_call`
 * has no id; the other formats link a result to its call only by the id.
 *
 * The rule: the n-th call without an id (from 0) of the message with the id M is `call_M_n`, with M without its
 * dashes. So the id is the same on every page and in every format, unique in the conversation, and within the 40
 * characters that OpenAI allows. A result without an id belongs to the first open call of its name, in the latest
 * message that has one; one with neither id nor name to
 * the call of the message before it, or else to the oldest open one. If the run has no such call, the call was on an earlier page: then the result is assumed to
 * answer the previous message (`parent_id`), the n-th result the n-th call, which is correct if the results are in
 * one message directly after that of the calls.
 */

/** Where a message stands in its session. */
export interface MessagePlace {
  /** The message's id. */
  id: string
  /** The id of the previous message, if there is one and it is known. */
  parent_id?: string | null
}

/** The open calls of one name in one message. */
interface OpenCalls {
  ids: string[]
  next: number
  message: number
}

/**
 * Follows the calls and results of one conversation, message by message, oldest first. It only remembers open calls,
 * so a session of any length can go through it.
 */
export class CallIds {
  private readonly openNames = new Map<string, string>()
  private readonly openByName = new Map<string, OpenCalls[]>()
  private readonly derived = new Set<string>()
  private place: MessagePlace | undefined
  private message = 0
  private callsWithoutId = 0
  private resultsWithoutId = 0

  /** Continues with the next message. Without a place, ids are derived as if its id were `0`. */
  enter(place?: MessagePlace): void {
    this.place = place
    this.message++
    this.callsWithoutId = 0
    this.resultsWithoutId = 0
  }

  /** Goes on where another reader of the conversation was, with the calls that were open there, in order. */
  resume(open: ReadonlyArray<{ id: string; name: string; seq: number }>): void {
    let last_seq = 0
    for (const { id, name, seq } of open) {
      if (seq !== last_seq) this.enter()
      last_seq = seq
      this.ofCall(id, name)
      if (DERIVED.test(id)) this.derived.add(id)
    }
  }

  /** The id of a call in the message: its own, or a derived one. */
  ofCall(given: string | undefined, name: string): string {
    const id = given || undefined
    const known = id ?? derive(this.place?.id, this.callsWithoutId++)
    if (id === undefined) this.derived.add(known)
    this.openNames.set(known, name)
    this.groupOf(name).ids.push(known)
    return known
  }

  /** The call that a result answers, and its name if either of the two has it. */
  ofResult(given: string | undefined, named: string | undefined): { id: string; name: string | undefined } {
    // Some services write an empty text for an id or a name that is not there.
    const id = given || undefined
    const name = named || undefined
    if (id !== undefined && this.openNames.has(id)) return this.close(id, name)
    if (name !== undefined) {
      const open = this.firstOpen(name)
      // A result may have an id that its call, stored without one, never had.
      if (open !== undefined && (id === undefined || this.derived.has(open))) return this.close(open, name)
    }
    if (id !== undefined) return { id, name }
    const derived = derive(this.place?.parent_id ?? undefined, this.resultsWithoutId++)
    const [oldest = derived] = name === undefined && !this.openNames.has(derived) ? this.openNames.keys() : []
    return this.close(oldest, name)
  }

  private close(id: string, name: string | undefined): { id: string; name: string | undefined } {
    const known = this.openNames.get(id)
    this.openNames.delete(id)
    this.derived.delete(id)
    return { id, name: name ?? known }
  }

  /** The calls of that name in this message. */
  private groupOf(name: string): OpenCalls {
    const latest = this.openByName.get(name)?.at(-1)
    if (latest?.message === this.message) return latest
    this.firstOpen(name) // drops answered groups, so that they do not accumulate
    const group = { ids: [], next: 0, message: this.message }
    const groups = this.openByName.get(name)
    if (groups === undefined) this.openByName.set(name, [group])
    else groups.push(group)
    return group
  }

  /** The first open call of that name, in the latest message that has one. */
  private firstOpen(name: string): string | undefined {
    const groups = this.openByName.get(name)
    while (groups !== undefined && groups.length > 0) {
      const group = groups.at(-1) as OpenCalls
      for (; group.next < group.ids.length; group.next++) {
        const id = group.ids[group.next] as string
        if (this.openNames.get(id) === name) return id
      }
      groups.pop()
    }
    this.openByName.delete(name)
    return undefined
  }
}

const DERIVED = /^c(?:all)?_[0-9a-f]{32}_\d+$/

function derive(messageId: string | undefined, nth: number): string {
  // OpenAI takes ids of 40 characters.
  return `${nth < 100 ? 'call' : 'c'}_${(messageId ?? '0').replaceAll('-', '')}_${nth}`
}
