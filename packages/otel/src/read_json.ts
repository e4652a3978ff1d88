import { ExactNumber, isJsonObject, parseJson } from '@annals/messages/json'
import { anyNumber, type Bounds, storable, wholeNumber } from './bounds.js'
import { setMember } from './read_protobuf.js'
import { absent, type Field, type Message } from './schema.js'
import { Unreadable } from './telemetry.js'

type Read = Record<string, unknown>

/** Objects and lists in one request. */
const OBJECTS_MAX = 600_000
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b])

/** Reads a message of OTLP from JSON. Members that the table does not name are left out. @throws Unreadable */
export function readJsonMessage(text: string, message: Message, bounds: Bounds): Read {
  // Before it is parsed: a list of nothing takes eighty times its length.
  let objects = 0
  const is_short = text.length <= OBJECTS_MAX
  for (let at = 0; !is_short && at < text.length; at++) if (OPENING.has(text.charCodeAt(at))) objects += 1
  if (objects > OBJECTS_MAX)
    throw new Unreadable(
      `The request has more than ${OBJECTS_MAX} objects and lists. Send smaller batches.`,
      true,
    )
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    throw new Unreadable(`The body is not JSON of OTLP: ${(error as Error).message}.`)
  }
  return messageOf(value, message, bounds, '')
}

function messageOf(value: unknown, message: Message, bounds: Bounds, place: string): Read {
  if (!isJsonObject(value)) throw new Unreadable(`The body is not OTLP: ${place || '/'} must be an object.`)
  bounds.message()
  const read: Read = {}
  for (const { name, camel, field } of fieldsOf(message)) {
    const given = value[camel] ?? value[name]
    if (given == null) {
      read[name] = absent(field)
      continue
    }
    const at = `${place}/${camel}`
    if (field.many || field.type === 'attributes') {
      if (!Array.isArray(given)) throw new Unreadable(`The body is not OTLP: ${at} must be an array.`)
      if (field.type === 'attributes') read[name] = membersOf(given, bounds, 1)
      else read[name] = itemsOf(given, field, bounds, at)
    } else read[name] = fieldValue(given, field, bounds, at)
  }
  return read
}

function itemsOf(given: unknown[], field: Field, bounds: Bounds, at: string): unknown[] {
  const items: unknown[] = []
  for (const [index, one] of given.entries()) {
    const read = () => messageOf(one, field.type as Message, bounds, `${at}/${index}`)
    const item = field.many === 'each' ? bounds.each(read) : read()
    if (item !== undefined) items.push(item)
  }
  return items
}

function fieldValue(given: unknown, { type }: Field, bounds: Bounds, at: string): unknown {
  if (typeof type === 'object') return messageOf(given, type, bounds, at)
  if (type === 'value') return anyValue(given, bounds, 1)
  if (type === 'text' || type === 'hex') {
    if (typeof given !== 'string') throw new Unreadable(`The body is not OTLP: ${at} must be a string.`)
    return type === 'text' ? storable(given) : hexIn(given)
  }
  const number = bigintOf(given) ?? 0n
  return type === 'fixed64' ? number : Number(number)
}

function anyValue(given: unknown, bounds: Bounds, depth: number): unknown {
  bounds.value(depth)
  if (!isJsonObject(given)) return null
  if (typeof given.stringValue === 'string') return storable(given.stringValue)
  if (typeof given.boolValue === 'boolean') return given.boolValue
  if (given.intValue != null) {
    const whole = bigintOf(given.intValue)
    return whole === undefined ? storable(String(given.intValue)) : wholeNumber(whole)
  }
  if (given.doubleValue != null) return doubleOf(given.doubleValue)
  if (typeof given.bytesValue === 'string') return storable(given.bytesValue)
  if (isJsonObject(given.arrayValue)) {
    const { values } = given.arrayValue
    return Array.isArray(values) ? values.map((value) => anyValue(value, bounds, depth + 1)) : []
  }
  if (isJsonObject(given.kvlistValue)) {
    const { values } = given.kvlistValue
    return Array.isArray(values) ? membersOf(values, bounds, depth + 1) : {}
  }
  return null
}

function membersOf(list: unknown[], bounds: Bounds, depth: number): Read {
  const members: Read = {}
  for (const one of list) {
    if (!isJsonObject(one) || typeof one.key !== 'string') continue
    setMember(members, [storable(one.key), anyValue(one.value, bounds, depth)])
  }
  return members
}

/** A whole number that is sent as text, or as a number. */
function bigintOf(given: unknown): bigint | undefined {
  const text = given instanceof ExactNumber ? given.digits : String(given)
  return /^-?\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

function doubleOf(given: unknown): unknown {
  if (given instanceof ExactNumber) return given
  return typeof given === 'number' ? given : anyNumber(Number(given))
}

function hexIn(given: string): string {
  const text = given.slice(0, 32).toLowerCase()
  return /^[0-9a-f]*$/.test(text) ? text : ''
}

interface NamedField {
  name: string
  /** Its name in JSON. */
  camel: string
  field: Field
}

const fields = new Map<Message, NamedField[]>()

function fieldsOf(message: Message): NamedField[] {
  let found = fields.get(message)
  if (!found) {
    found = Object.entries(message).map(([name, field]) => {
      const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
      return { name, camel, field }
    })
    fields.set(message, found)
  }
  return found
}
