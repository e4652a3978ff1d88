import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { anyNumber, type Bounds, storable, wholeNumber } from './bounds.js'
import { empty, type Field, type Message } from './schema.js'
import { Unreadable } from './telemetry.js'

type Read = Record<string, unknown>

const byNumber = new WeakMap<Message, Map<number, [name: string, field: Field]>>()

/** Reads a message of OTLP. Fields that the table does not name are skipped. @throws Unreadable */
export function readProtobuf(bytes: Uint8Array, message: Message, bounds: Bounds): Read {
  const reader = new BinaryReader(bytes)
  try {
    return messageUpTo(reader, bytes.length, message, bounds)
  } catch (error) {
    if (error instanceof RangeError || error instanceof Error === false)
      throw new Unreadable('The body is not protobuf of OTLP: it ends within a field.')
    if (error.constructor === Error)
      throw new Unreadable(`The body is not protobuf of OTLP: ${error.message}.`)
    throw error
  }
}

function messageUpTo(reader: BinaryReader, end: number, message: Message, bounds: Bounds): Read {
  bounds.message()
  const fields = fieldsOf(message)
  const read = empty(message)
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    const [name, field] = fields.get(number) ?? []
    if (!name || !field) {
      reader.skip(wire, number)
      continue
    }
    const value = fieldValue(reader, wire, number, field, bounds)
    if (value === undefined) continue
    if (field.many) (read[name] as unknown[]).push(value)
    else if (field.type === 'attributes') setMember(read[name] as Read, value as [string, unknown])
    else read[name] = value
  }
  checkEnd(reader, end)
  return read
}

function fieldValue(reader: BinaryReader, wire: WireType, number: number, field: Field, bounds: Bounds) {
  const { type, many } = field
  if (typeof type === 'object') {
    const end = endOf(reader, wire)
    const read = () => messageUpTo(reader, end, type, bounds)
    if (many !== 'each') return read()
    const item = bounds.each(read)
    reader.pos = end
    return item
  }
  switch (type) {
    case 'text':
      return storable(sized(reader, wire).string())
    case 'hex':
      return hexOf(sized(reader, wire).bytes())
    case 'attributes':
      return keyValue(reader, endOf(reader, wire), bounds, 1)
    case 'value':
      return anyValue(reader, endOf(reader, wire), bounds, 1)
    case 'fixed64':
      if (wire === WireType.Bit64) return BigInt(reader.fixed64())
      break
    default:
      if (wire === WireType.Varint) return reader.uint32()
  }
  reader.skip(wire, number)
  return undefined
}

function keyValue(reader: BinaryReader, end: number, bounds: Bounds, depth: number): [string, unknown] {
  let key = ''
  let value: unknown = null
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (number === 1) key = storable(sized(reader, wire).string())
    else if (number === 2) value = anyValue(reader, endOf(reader, wire), bounds, depth)
    else reader.skip(wire, number)
  }
  checkEnd(reader, end)
  return [key, value]
}

function anyValue(reader: BinaryReader, end: number, bounds: Bounds, depth: number): unknown {
  bounds.value(depth)
  let value: unknown = null
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (number === 1) value = storable(sized(reader, wire).string())
    else if (number === 2 && wire === WireType.Varint) value = reader.bool()
    else if (number === 3 && wire === WireType.Varint) value = wholeNumber(BigInt(reader.int64()))
    else if (number === 4 && wire === WireType.Bit64) value = anyNumber(reader.double())
    else if (number === 5) value = arrayValue(reader, endOf(reader, wire), bounds, depth + 1)
    else if (number === 6) value = listOfMembers(reader, endOf(reader, wire), bounds, depth + 1)
    else if (number === 7) value = base64Of(sized(reader, wire).bytes())
    else reader.skip(wire, number)
  }
  checkEnd(reader, end)
  return value
}

function arrayValue(reader: BinaryReader, end: number, bounds: Bounds, depth: number): unknown[] {
  const values: unknown[] = []
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (number === 1) values.push(anyValue(reader, endOf(reader, wire), bounds, depth))
    else reader.skip(wire, number)
  }
  checkEnd(reader, end)
  return values
}

function listOfMembers(reader: BinaryReader, end: number, bounds: Bounds, depth: number): Read {
  const members: Read = {}
  while (reader.pos < end) {
    const [number, wire] = reader.tag()
    if (number === 1) setMember(members, keyValue(reader, endOf(reader, wire), bounds, depth))
    else reader.skip(wire, number)
  }
  checkEnd(reader, end)
  return members
}

/** Where a field of a length that it states ends. */
function endOf(reader: BinaryReader, wire: WireType): number {
  if (wire !== WireType.LengthDelimited) throw new Error('a field has the wrong wire type')
  const length = reader.uint32()
  if (length > reader.len - reader.pos) throw new RangeError('premature EOF')
  return reader.pos + length
}

function sized(reader: BinaryReader, wire: WireType): BinaryReader {
  if (wire !== WireType.LengthDelimited) throw new Error('a field has the wrong wire type')
  return reader
}

function checkEnd(reader: BinaryReader, end: number): void {
  if (reader.pos !== end) throw new RangeError('a field reaches beyond its message')
}

function fieldsOf(message: Message): Map<number, [string, Field]> {
  let fields = byNumber.get(message)
  if (!fields) {
    fields = new Map(Object.entries(message).map(([name, field]) => [field.number, [name, field]]))
    byNumber.set(message, fields)
  }
  return fields
}

/** Also where it is called __proto__. The first of a name counts. */
export function setMember(members: Record<string, unknown>, [name, value]: [string, unknown]): void {
  if (Object.hasOwn(members, name)) return
  if (name !== '__proto__') members[name] = value
  else Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true })
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function hexOf(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes.subarray(0, 16)) text += HEX[byte]
  return text
}

function base64Of(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}
